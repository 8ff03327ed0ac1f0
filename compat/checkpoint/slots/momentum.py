"""Momentum, Nesterov's too: TF1 accumulates gradients, Keras steps: velocity = -learning_rate * accumulator."""

from __future__ import annotations

from estimator_bridge.compat.checkpoint.slots.table import OptimizerTable, SlotRow, newer

TABLES = (
    OptimizerTable(
        "Momentum",
        "SGD",
        (SlotRow("Momentum", "momentum", "momentums", scale="minus learning_rate"),),
        sparse=newer("velocities of rows without a gradient decay (differences up to 1.05)"),
        note="after a change of the learning rate, scale the velocities by new / old",
    ),
)
