"""Adagrad: the same accumulator; TF1 adds no epsilon, so Keras' has to be too small to matter."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import DUPLICATES, OptimizerTable, SlotRow

TABLES = (
    OptimizerTable(
        "Adagrad",
        "Adagrad",
        (SlotRow("Adagrad", "accumulator", "accumulators"),),
        epsilon=(1e-30, 1e-7),
        sparse=DUPLICATES,
    ),
)
