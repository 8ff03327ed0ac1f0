"""Ftrl, with L1, L2 and shrinkage: the same two slots, the same values."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import DUPLICATES, OptimizerTable, SlotRow

TABLES = (
    OptimizerTable(
        "Ftrl",
        "Ftrl",
        (SlotRow("Ftrl", "accumulator", "accumulators"), SlotRow("Ftrl_1", "linear", "linears")),
        sparse=DUPLICATES,
    ),
)
