"""Adadelta: the same two slots."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable, SlotRow, newer

TABLES = (
    OptimizerTable(
        "Adadelta",
        "Adadelta",
        (
            SlotRow("Adadelta", "accum_grad", "accumulated_grads"),
            SlotRow("Adadelta_1", "accum_var", "accumulated_delta_vars"),
        ),
        epsilon=(1e-8, 1e-7),
        sparse=newer("rows without a gradient are updated"),
    ),
)
