"""Stages of a training step: the training graph, cut at its optimizer updates.

TF1 runs everything as one graph. Here a Keras optimizer takes the place of each captured update, and the rest is cut into stages.
Stage 0 computes the gradients and what belongs to them (e.g., moving averages of batch norm). Then the updates that wait for nothing
else are applied. Stage 1 holds the operations that waited for them (e.g., counting the global step, exponential moving averages, the
gradients of a second optimizer), and so on.
"""

import dataclasses
import graphlib
from collections import Counter
from collections.abc import Iterable, Sequence, Set

from estimator_bridge.modern.graph.fragments import (
    Fragment,
    Operation,
    Tensor,
    is_copied,
    is_source,
    producers,
    refused,
    upstream,
    variable_of,
)
from estimator_bridge.modern.graph.optimizers.capture import Update
from estimator_bridge.modern.graph.reference_variables import read_after_writes, reading
from estimator_bridge.modern.graph.side_effects import Effect, Effects
from estimator_bridge.modern.graph.variables import writes


@dataclasses.dataclass(frozen=True)
class Stage:
    """A fragment, the updates to apply once it has run, and the ``operations`` that it was cut from."""

    fragment: Fragment
    updates: tuple[Update, ...]
    operations: frozenset[Operation]

    @classmethod
    def cut(
        cls, ops: Set[Operation], outputs: Sequence[Tensor], references: Set[str], updates: Sequence[Update] = ()
    ) -> "Stage":
        """Cuts out a stage, whose operations read variables when those of TensorFlow 1 do.

        Args:
            ops: Operations of a training graph.
            outputs: Tensors that the stage gives.
            references: Operation names of the variables that TensorFlow 1 made reference variables.
            updates: Updates that follow.
        """
        written = {name for name, _ in writes(ops)} - references
        # What waits for nothing reads its variable when a step begins, however late in the script.
        first = {op for op in ops if op.type == "ReadVariableOp" and not op.control_inputs and op.inputs[0].op.name in written}
        fragment = read_after_writes(Fragment.cut(ops, outputs, first=first), ops, references)
        return cls(fragment, tuple(updates), frozenset(ops))


@dataclasses.dataclass(frozen=True)
class Observation:
    """Tensors that one callback reads together, at some of the steps: ``late.outputs``.

    Attributes:
        early: Part that is computed from variables only; a TF1 session does so before it updates them.
        late: Rest, after the last stage.
    """

    early: Fragment
    late: Fragment


@dataclasses.dataclass(frozen=True)
class Plan:
    """A whole training step: ``stages`` in order, its ``observations`` (e.g., summaries), and the ``operations`` of the stages."""

    stages: tuple[Stage, ...]
    observations: tuple[Observation, ...]
    operations: frozenset[Operation]

    @property
    def updates(self) -> tuple[Update, ...]:
        """Every update, in the order of application."""
        return tuple(update for stage in self.stages for update in stage.updates)


def plan(
    train_op: Operation,
    loss: Tensor,
    updates: Sequence[Update],
    report: Sequence[Sequence[Tensor]],
    references: Set[str] = frozenset(),
) -> Plan:
    """Divides a training graph.

    Args:
        train_op: Operation that Estimator would run at each step.
        loss: Loss of a step; an output of the stage that computes it.
        updates: Captured optimizer calls; those that ``train_op`` does not run are left out.
        report: Groups of tensors to observe.
        references: Operation names of the variables that TensorFlow 1 made reference variables. What was read from one is the
            variable itself, so an operation after an update sees the update, whenever the model_fn read the variable.

    Returns:
        The plan, with an observation for each group. It has one observation for all groups if two of them share an operation
        that may run only once in a step, e.g., one that draws a random number.

    Raises:
        NotSupportedError: The graph has TF1 while loops, which are cycles.
    """
    by_op = {update.op: update for update in updates}

    def parents(op: Operation) -> Iterable[Operation]:
        return by_op[op].producers() if op in by_op else producers(op)

    closure = upstream([train_op, loss.op], is_source, parents)
    observed = [upstream([tensor.op for tensor in group], lambda op: is_source(op) or op in closure) for group in report]
    if _share_effects(observed):
        report = [list({tensor.name: tensor for group in report for tensor in group}.values())]
        observed = [set().union(*observed)]
    reporting: set[Operation] = set().union(*observed)
    level = _levels({op: [parent for parent in parents(op) if parent in closure] for op in closure}, set(by_op))
    used = [update for update in updates if update.op in closure]
    needed = [tensor for update in used for tensor in (*update.gradients(), *update.changing().values())]
    levels = range(max(level.values()) + 1)
    members = [{op for op in closure if level[op] == at and op not in by_op} for at in levels]
    again = [read_again(ops, references) if at else set() for at, ops in enumerate(members)]
    needed += [tensor for ops in again for op in ops for tensor in op.inputs[1:] if not is_copied(tensor.op)]
    wanted = [loss, *(tensor for group in report for tensor in group), *needed]
    stages = tuple(
        Stage.cut(
            ops | read,
            _outputs(ops, wanted, closure | reporting),
            references,
            [update for update in used if level[update.op] == at],
        )
        for at, ops, read in zip(levels, members, again, strict=True)
    )
    observations = tuple(_observation(group, ops, closure, references) for group, ops in zip(report, observed, strict=True))
    return Plan(stages, observations, frozenset(closure))


def _observation(tensors: Sequence[Tensor], ops: set[Operation], step: set[Operation], references: Set[str]) -> Observation:
    early = _independent(ops, step)
    late = ops - early
    # A session gives a reference variable itself as it is after the step, and what is computed from it as before.
    after = _reads(tensors, references) - {tensor.op for op in late for tensor in op.inputs}
    computed = [tensor for tensor in tensors if tensor.op not in after]
    return Observation(Fragment.cut(early, _outputs(early, computed, ops)), Fragment.cut(late | after, tensors))


def read_again(ops: Iterable[Operation], references: Set[str]) -> set[Operation]:
    """Returns the operations that read the ``references`` among the inputs of ``ops``."""
    return {read for op in ops for tensor in op.inputs for read in reading(tensor, references)}


def _reads(tensors: Iterable[Tensor], references: Set[str]) -> set[Operation]:
    """Returns the operations that read the ``references`` among ``tensors``."""
    handles = ((tensor, variable_of(tensor)) for tensor in tensors)
    return upstream([one.op for one, handle in handles if handle is not None and handle.op.name in references], is_source)


def _share_effects(groups: Sequence[set[Operation]]) -> bool:
    counts = Counter(op for ops in groups for op in ops)
    shared = [op for op, count in counts.items() if count > 1]
    effects = Effects(shared[0].graph) if shared else None
    return effects is not None and any(effects.of(op) > Effect.NONE for op in shared)


def _independent(ops: set[Operation], step: set[Operation]) -> set[Operation]:
    """Returns the ``ops`` that wait neither for an operation of the step nor for its batch, the only source but variables."""
    dependent: set[Operation] = set()
    for op in sorted(ops, key=lambda op: op._id):
        if any(one in step or one in dependent or (is_source(one) and one.type != "VarHandleOp") for one in producers(op)):
            dependent.add(op)
    return ops - dependent


def _levels(parents: dict[Operation, list[Operation]], updates: set[Operation]) -> dict[Operation, int]:
    level: dict[Operation, int] = {}
    try:
        for op in graphlib.TopologicalSorter(parents).static_order():
            level[op] = max((level[parent] + (parent in updates) for parent in parents[op]), default=0)
    except graphlib.CycleError as error:
        (op, *_) = error.args[1]
        raise refused(
            op,
            f"The training graph has a loop of TensorFlow 1's kind around {op.name!r}.",
            expected="tf.while_loop as TensorFlow 2 builds it",
            fix="Import no MetaGraph with loops and do not switch control flow inside of the model_fn, or use --path legacy.",
        ) from None
    return level


def _outputs(ops: set[Operation], wanted: Sequence[Tensor], everything: set[Operation]) -> list[Tensor]:
    crossing = [tensor for op in everything - ops for tensor in op.inputs if not is_copied(tensor.op)]
    return list({tensor.name: tensor for tensor in (*wanted, *crossing) if tensor.op in ops}.values())
