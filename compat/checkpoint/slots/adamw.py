"""AdamW of tf.contrib: Adam's slots under its own name."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import BETAS, OptimizerTable, SlotRow

TABLES = (
    OptimizerTable(
        "AdamW",
        "AdamW",
        (SlotRow("AdamW", "m", "momentums"), SlotRow("AdamW_1", "v", "velocities")),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        note="tf_keras has no legacy AdamW; Keras multiplies weight_decay by the learning rate, tf.contrib does not",
    ),
)
