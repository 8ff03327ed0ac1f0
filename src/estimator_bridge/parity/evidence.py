"""Evidence about the first steps of both sides, from which rules find the first cause of a difference.

A rule is a function of ``Evidence``. Values and gradients are NumPy arrays that are read when they are asked for. Variables have one
name on both sides: that of the old script's checkpoint where the two are paired one to one, else the key in the new script's checkpoint
(e.g. for recurrent cells, whose weights have another layout).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

Values = Callable[[], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class StepEvidence:
    """One of the first three training steps of one side. Both sides start each of them from the same values.

    Attributes:
        index: Number of the step, from 1.
        loss: Loss of the step.
        gradients: Function that returns the gradient of each trained variable; dense, in the layout of the side.
        before: Function that returns the values before the step, slots included.
        after: Function that returns the values after the step, before an anchor gives the old side's values back.
        optimizers: Hyperparameters of each optimizer at this step, see ``OptimizerEvidence``.
    """

    index: int
    loss: float
    gradients: Values
    before: Values
    after: Values
    optimizers: tuple[OptimizerEvidence, ...] = ()


@dataclasses.dataclass(frozen=True)
class OptimizerEvidence:
    """One optimizer at one step.

    Attributes:
        name: Name of its class, e.g. "AdamOptimizer" or "Adam".
        family: "tf1", "legacy" (tf_keras.optimizers.legacy) or "new".
        hyperparameters: Numbers by name, e.g. learning_rate of this step, epsilon, momentum, beta_1; names are those of Keras.
        iterations: Number of updates that it counts after the step; None if it does not count.
        variables: Names of the variables that it updates; empty if that is not known.
    """

    name: str
    family: str
    hyperparameters: Mapping[str, float]
    iterations: int | None = None
    variables: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class DropoutSite:
    """A dropout operation that the training step has.

    Attributes:
        shape: Static shape without the batch dimension; None for unknown dimensions.
        rate: Share of units that are dropped; None if it is a tensor.
    """

    shape: tuple[int | None, ...]
    rate: float | None


@dataclasses.dataclass(frozen=True)
class SideEvidence:
    """Records of one side.

    Attributes:
        steps: The first three training steps.
        trainable: Names of the trainable variables in their order of creation.
        moving_averages: Names of the other variables that the steps change.
        dropout: Dropout operations of the training step, in their order.
        batch_shapes: Path of each tensor of the training batch, e.g. "features/x" or "labels" -> its shape at step 1.
        prediction_shapes: Shapes of the model's outputs at step 1, by name; empty if they are not known.
        steps_per_epoch: Number of steps of each training call or epoch, in order.
        iterations: Number of updates that the first optimizer counts after each step, in order; empty if it does not count.
        evaluation_losses: Loss of each batch, for each evaluation in order.
        evaluation_rows: Number of rows of each batch, for each evaluation in order.
    """

    steps: tuple[StepEvidence, ...] = ()
    trainable: tuple[str, ...] = ()
    moving_averages: tuple[str, ...] = ()
    dropout: tuple[DropoutSite, ...] = ()
    batch_shapes: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    prediction_shapes: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    steps_per_epoch: tuple[int, ...] = ()
    iterations: tuple[int, ...] = ()
    evaluation_losses: tuple[tuple[float, ...], ...] = ()
    evaluation_rows: tuple[tuple[int, ...], ...] = ()


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The evidence of a comparison.

    Attributes:
        old: Evidence of the old script.
        new: Evidence of the new script.
        unmatched_old: Variables of the old script without a counterpart.
        unmatched_new: Variables of the new script without a counterpart.
        anchored: Steps after which the new side got the old side's values back.
    """

    old: SideEvidence
    new: SideEvidence
    unmatched_old: tuple[str, ...] = ()
    unmatched_new: tuple[str, ...] = ()
    anchored: tuple[int, ...] = ()
