"""LAMB: Adam's moments, scaled by layer."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable, SlotRow

TABLES = (
    OptimizerTable(
        "LAMB",
        "Lamb",
        (
            SlotRow("LAMB", "m", "momentums"),
            SlotRow("LAMB_1", "v", "velocities"),
            SlotRow("lamb_m", "m", "momentums"),
            SlotRow("lamb_v", "v", "velocities"),
        ),
        epsilon=(1e-6, 1e-7),
        note="only Keras 3 has Lamb",
    ),
)
