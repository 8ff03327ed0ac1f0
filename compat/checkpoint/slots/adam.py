"""Adam, and LazyAdam: first and second moment; beta ** (t + 1) becomes iterations = t.

tf.contrib's LazyAdam and Nadam call their slots as Adam does unless they are given a name of their own.
"""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import BETAS, DUPLICATES, OptimizerTable, SlotRow, every

TABLES = (
    OptimizerTable(
        "Adam",
        "Adam",
        (SlotRow("Adam", "m", "momentums"), SlotRow("Adam_1", "v", "velocities")),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        sparse=DUPLICATES,
        note="the slots of tf.contrib's LazyAdam and Nadam have the same names: tell LazyAdam with --optimizer; "
        "Keras' Nadam follows a schedule that tf.contrib's does not have",
    ),
    OptimizerTable(
        "LazyAdam",
        "Adam",
        (SlotRow("LazyAdam", "m", "momentums"), SlotRow("LazyAdam_1", "v", "velocities")),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        sparse=every("LazyAdam leaves rows without a gradient alone, Keras' Adam goes on moving them"),
    ),
)
