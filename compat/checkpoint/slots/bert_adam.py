"""The AdamWeightDecayOptimizer that BERT's and its descendants' scripts bring along: no bias correction."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable, SlotRow

ITERATIONS = 10_000_000  # beta ** t is 0 in float32: Keras' correction factors are 1

TABLES = (
    OptimizerTable(
        "BERT's Adam",
        "AdamW",
        (SlotRow("adam_m", "m", "momentums"), SlotRow("adam_v", "v", "velocities")),
        epsilon=(1e-6, 1e-7),
        note=f"iterations = {ITERATIONS:,} turns Keras' bias correction off",
    ),
)
