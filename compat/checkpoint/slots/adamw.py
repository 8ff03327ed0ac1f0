"""AdamW of tf.contrib: Adam's slots under its own name."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import BETAS, OptimizerTable, SlotRow, newer

TABLES = (
    OptimizerTable(
        "AdamW",
        "AdamW",
        (SlotRow("AdamW", "m", "momentums"), SlotRow("AdamW_1", "v", "velocities")),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        absent={"legacy": "tf_keras.optimizers.legacy has no AdamW"},
        sparse=newer("rows without a gradient decay too"),
        note="Keras multiplies weight_decay by the learning rate, tf.contrib does not: divide it by the learning rate",
    ),
)
