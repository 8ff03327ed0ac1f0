"""AdaMax of tf.contrib: first moment, and the largest gradient, which keeps no beta power."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable, SlotRow, newer

TABLES = (
    OptimizerTable(
        "AdaMax",
        "Adamax",
        (SlotRow("AdaMax", "m", "m"), SlotRow("AdaMax_1", "v", "u")),
        betas={"beta1_power": "beta_1"},
        epsilon=(1e-8, 1e-7),
        sparse=newer("tf.contrib's leaves rows without a gradient alone, Keras' moves them"),
    ),
)
