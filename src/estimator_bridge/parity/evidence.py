"""Evidence about the first steps of both sides, from which rules find the first cause of a difference.

A rule is a function of ``Evidence``. Values and gradients are NumPy arrays that are read when they are asked for. Variables have one
name on both sides: that of the old script's checkpoint where the two are paired one to one, else the key in the new script's checkpoint
(e.g. for recurrent cells, whose weights have another layout).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

Values = Callable[[], Mapping[str, Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class StepEvidence:
    """One of the first three training steps of one side. Both sides start each of them from the same values.

    Attributes:
        index: Number of the step, from 1.
        loss: Loss of the step.
        gradients: Function that returns the gradient of each trained variable; dense, in the layout of the side.
        applied: Function that returns the gradients that the optimizers were given, after clipping; empty if they are not known.
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
    applied: Values = dict


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
class GraphFacts:
    """The forward pass of a training step, as far as its graph shows it.

    Attributes:
        broadcasts: Operations that combine shapes like [B, 1] and [B], which gives [B, B].
        flattened: Shape without the batch dimension of each tensor that a reshape flattens, in order.
        epsilons: Numbers that normalization layers add to a variance, in order.
    """

    broadcasts: tuple[str, ...] = ()
    flattened: tuple[tuple[int, ...], ...] = ()
    epsilons: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class ForwardValue:
    """A tensor that the forward pass of the first step computes, or a variable that it reads.

    Attributes:
        name, type: Name and type of its operation.
        inputs: Places of the tensors that it is computed from, among those of the side.
        shape: Static shape; None if the rank is not known.
        is_variable: True for a variable.
        is_batch: True for a tensor of the batch.
        is_data: True if it depends on the values of the batch or on a variable.
        settings: Attributes and constant inputs of the operation -> what they are, as text.
        body: Operations of a loop that computes it, or of a function that is called -> their number.
        numbers: Size, sum, sum of sizes, sum of squares, least and largest element, and a sum that the order of elements changes; empty if
            its elements were not looked at.
    """

    name: str
    type: str
    inputs: tuple[int, ...]
    shape: tuple[int | None, ...] | None = None
    is_variable: bool = False
    is_batch: bool = False
    is_data: bool = True
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: Mapping[str, int] = dataclasses.field(default_factory=dict)
    numbers: tuple[float, ...] = ()

    @property
    def size(self) -> float:
        """Number of elements; 0 if they were not looked at."""
        return self.numbers[0] if self.numbers else 0.0


@dataclasses.dataclass(frozen=True)
class BatchEvidence:
    """One of the first training batches: that of the new script's own input, and the recorded one that replaced it.

    Attributes:
        rows: Rows of both: (own, recorded).
        digests: Sums of the digests of the rows of both, so that the order of rows within a batch does not count.
    """

    rows: tuple[int, int]
    digests: tuple[int, int]


@dataclasses.dataclass(frozen=True)
class MetricEvidence:
    """A metric that differs, of one evaluation."""

    evaluation: str
    metric: str
    step: int
    old: float
    new: float


@dataclasses.dataclass(frozen=True, eq=False)
class SideEvidence:
    """Records of one side.

    Attributes:
        steps: The first three training steps.
        trainable: Names of the trainable variables in their order of creation.
        moving_averages: Names of the other variables that the steps change.
        dropout: Dropout operations of the training step, in their order; None if they are not known.
        batch_shapes: Path of each tensor of the training batch, e.g. "features/x" or "labels" -> its shape at step 1.
        steps_per_epoch: Number of steps of each training call or epoch, in order.
        iterations: Number of updates that the first optimizer counts after each step, in order; empty if it does not count.
        evaluation_losses: Loss of each batch, for each evaluation in order.
        evaluation_rows: Number of rows of each batch, for each evaluation in order.
        losses: Loss of each training step.
        learning_rates: Learning rates of each step, one for each optimizer.
        initial: Function that returns the side's own initial values, slots included.
        given: Names of the variables whose initial values the side does not draw, as far as that is known.
        set: Names of the variables to which its code gives other values before the first step, e.g. a hook.
        graph: Facts of the forward pass; None if it has no graph.
        forward: Values that the forward pass of the first step computes, the loss last; empty if they were not looked at.
        changes_gradients: True if something lies between gradients and optimizer, e.g. clipping; None if that is not known.
        evaluation_dropout: Largest number of dropout operations of an evaluation; None if that is not known.
        collected_only: Regularization losses in the graph's collection that the loss does not contain.
        shuffles: True if the side shuffles its input, False if its order is fixed; None if random numbers of NumPy or Python, or a
            Python function, may change it.
        fit_shuffles: True if Keras shuffles the rows of arrays, whose batches are looked at before.
    """

    steps: tuple[StepEvidence, ...] = ()
    trainable: tuple[str, ...] = ()
    moving_averages: tuple[str, ...] = ()
    dropout: tuple[DropoutSite, ...] | None = ()
    batch_shapes: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    steps_per_epoch: tuple[int, ...] = ()
    iterations: tuple[int, ...] = ()
    evaluation_losses: tuple[tuple[float, ...], ...] = ()
    evaluation_rows: tuple[tuple[int, ...], ...] = ()
    losses: Sequence[float] = ()
    learning_rates: tuple[tuple[float, ...], ...] = ()
    initial: Values = dict
    given: frozenset[str] = frozenset()
    set: frozenset[str] = frozenset()
    graph: GraphFacts | None = None
    forward: tuple[ForwardValue, ...] = ()
    changes_gradients: bool | None = None
    evaluation_dropout: int | None = None
    collected_only: int = 0
    shuffles: bool | None = None
    fit_shuffles: bool = False

    def unread(self, names: Collection[str]) -> frozenset[str]:
        """Returns the trainable ones of some variables that no loss of the first steps depends on; none if no gradient is known.

        They have no gradient, and nothing changes them.

        Args:
            names: Names of variables.
        """
        asked = frozenset(self.trainable).intersection(names)
        if not asked:
            return asked
        given = {name for step in self.steps for name in step.gradients()}
        updated = {name for step in self.steps for optimizer in step.optimizers for name in optimizer.variables}
        read = {re.sub(r"/part_\d+$", "", name) for name in given | updated}  # variables in parts are known as a whole
        values = [(step.before(), step.after()) for step in self.steps]
        changed = {
            name
            for name in asked
            if any(name in before and name in after and (before[name] != after[name]).any() for before, after in values)
        }
        return asked - read - changed if given else frozenset()


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence of a comparison.

    Attributes:
        old: Evidence of the old script.
        new: Evidence of the new script.
        unmatched_old: Variables of the old script without a counterpart.
        unmatched_new: Variables of the new script without a counterpart.
        anchored: Steps after which the new side got the old side's values back.
        start: Global step before the first training step.
        estimator: Name of the old script's Estimator class.
        batches: First training batches; empty if the user adapts them.
        other_values: Sentence about each tensor of the new script's own batches whose values no order of rows explains.
        metrics: Metrics that differ.
        evaluation_batches: Number of batches that each evaluation reads: (old, new).
        shared_rows: Number of rows of the new script's own batches that the old script's have, too.
        evaluation_rows: Sentence about each evaluation for which the new script has other rows.
        drops_in_evaluation: True if the new script's evaluation surely has dropout, and the old one's has none.
        kept_metrics: Metrics that an evaluation of the new script does not reset before it begins.
        predictions: Names of predictions that differ.
        shapes: Shapes of the variables without a counterpart.
        slots: Names of the optimizers' slots.
        lost: (step, names of variables) for each model that the new script makes after a step to go on, and that has other values of them.
    """

    old: SideEvidence
    new: SideEvidence
    unmatched_old: tuple[str, ...] = ()
    unmatched_new: tuple[str, ...] = ()
    anchored: tuple[int, ...] = ()
    start: int = 0
    estimator: str = ""
    batches: tuple[BatchEvidence, ...] = ()
    other_values: tuple[str, ...] = ()
    shared_rows: int = 0
    metrics: tuple[MetricEvidence, ...] = ()
    evaluation_batches: tuple[tuple[int, int], ...] = ()
    evaluation_rows: tuple[str, ...] = ()
    drops_in_evaluation: bool = False
    kept_metrics: tuple[str, ...] = ()
    predictions: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    slots: frozenset[str] = frozenset()
    lost: tuple[tuple[int, tuple[str, ...]], ...] = ()
