"""The AdamWeightDecayOptimizer that BERT's and its descendants' scripts bring along: no bias correction."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import DUPLICATES, OptimizerTable, SlotRow

TABLES = (
    OptimizerTable(
        "BERT's Adam",
        "AdamW",
        (SlotRow("adam_m", "m", "momentums"), SlotRow("adam_v", "v", "velocities")),
        uncorrected=True,
        epsilon=(1e-6, 1e-7),
        absent={"legacy": "tf_keras.optimizers.legacy has no AdamW"},
        sparse=DUPLICATES,
        note="some LAMBs keep their slots under the same names: tell them with --optimizer",
    ),
)
