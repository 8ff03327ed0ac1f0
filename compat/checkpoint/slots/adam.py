"""Adam, and LazyAdam, which keeps the same slots: first and second moment; beta ** (t + 1) becomes iterations = t."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import BETAS, DUPLICATES, OptimizerTable, SlotRow

TABLES = (
    OptimizerTable(
        "Adam",
        "Adam",
        (SlotRow("Adam", "m", "momentums"), SlotRow("Adam_1", "v", "velocities")),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        sparse_keras3=DUPLICATES,
    ),
    OptimizerTable(
        "LazyAdam",
        "Adam",
        (SlotRow("LazyAdam", "m", "momentums"), SlotRow("LazyAdam_1", "v", "velocities")),
        betas=BETAS,
        epsilon=(1e-8, 1e-7),
        sparse="LazyAdam leaves the moments of rows without a gradient alone, Keras' Adam lets them decay",
    ),
)
