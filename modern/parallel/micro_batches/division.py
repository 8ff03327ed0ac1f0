"""Division of a training step: what runs for each micro-batch, and what runs once, before or after all of them.

An operation belongs to the micro-batches if its value differs between them. What reads only losses and gradients, e.g., clipping and an
optimizer, runs once with those of the whole batch. What depends on no batch, e.g., the decay of the weights, runs once, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Set

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Operation, Tensor, data_producers, is_copied, is_source, refused, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph, v1
from estimator_bridge.modern.graph.side_effects import Effect, Effects
from estimator_bridge.modern.graph.stages import Plan, Stage, read_again
from estimator_bridge.modern.graph.variables import writes
from estimator_bridge.modern.parallel.micro_batches.reductions import (
    Reduction,
    names_rows_once,
    reductions,
    trained,
)

_WITHOUT = {"micro-batch": "Train without --micro", "replica": "Run on one replica"}


@dataclasses.dataclass(frozen=True)
class Part:
    """One stage of a step in three parts, in the order in which they run.

    Attributes:
        before: Operations that depend on no batch and that a micro-batch needs.
        each: Operations of each micro-batch.
        after: Other operations, and the updates that follow.
    """

    before: Stage
    each: Stage
    after: Stage


class Division:
    """The parts of a training step.

    Args:
        model: Training graph.
        plan: Stages of a step.
        writes_allowed: True to let each micro-batch write to variables, e.g., to the moving averages of a batch norm.
        reduced: Name of a tensor that is combined -> way of doing so; None for losses and what ``tf.gradients`` returned.
        weight: Divisor by which micro-batches are weighted; None if they count by their rows.
        part: Word for a part of a batch in messages: "micro-batch" or "replica".
        complete: True to compute all that is combined, whether something reads it or not, so that all workers combine the same.

    Attributes:
        reduced: The same, complete.
        derivations: Calls of ``tf.gradients`` whose gradients are combined; empty if ``reduced`` was given.
        each: Operations of each micro-batch.
        core: Operations that losses and gradients are computed by.
        parts: Parts of each stage.

    Raises:
        NotSupportedError: The graph computes something from the values of a whole batch.
    """

    def __init__(
        self,
        model: ModelGraph,
        plan: Plan,
        writes_allowed: bool = False,
        reduced: Mapping[str, Reduction] | None = None,
        weight: Tensor | None = None,
        part: str = "micro-batch",
        complete: bool = False,
    ) -> None:
        self._model = model
        self._part = part
        self._effects = Effects(model.graph)
        updates = {update.op for update in plan.updates}
        self._ops = plan.operations - updates
        self.derivations = trained(model, self._ops) if reduced is None else []
        self.reduced = dict(reductions(model, self.derivations) if reduced is None else reduced)
        self._weights = [] if weight is None else [weight]
        self.reduced |= {one.name: Reduction.WEIGHT for one in self._weights}
        tensors = [tensor for op in self._ops for tensor in op.outputs if tensor.name in self.reduced]
        self.core = upstream([tensor.op for tensor in tensors], lambda op: is_source(op) or op not in self._ops)
        self.each = self._find_each()
        needed = [one for op in self.each for one in (data_producers(op) if op not in self.core else ())]
        self._before = upstream([*self.core, *needed], self._is_no_part_of_before, data_producers)
        self._add_up_equal_rows()
        self._combined = [tensor for tensor in tensors if tensor.op in self.each] if complete else []
        self._check_writes(writes_allowed)
        self._check_updates(plan)
        self._check_rows()
        self.parts = [self._divide(stage) for stage in plan.stages]

    def varies(self, tensor: Tensor) -> bool:
        """Returns True if a tensor differs between micro-batches: it depends on the batch other than by what is combined."""
        waiting, seen = [tensor], set[str]()
        while waiting:
            one = waiting.pop()
            if one.name in seen or one.name in self.reduced:
                continue
            seen.add(one.name)
            if _is_batch(one.op) or one.op in self.each:
                return True
            waiting += [] if is_source(one.op) or one.op in self._ops else one.op.inputs
        return False

    def _is_no_part_of_before(self, op: Operation) -> bool:
        return is_source(op) or op not in self._ops or op in self.each

    def _find_each(self) -> set[Operation]:
        reading: set[Operation] = set()  # operations that read what a micro-batch has written
        while True:
            each = self._find_varying(reading)
            written = {name for name, _ in writes(each)}
            behind = upstream(each, lambda op: is_source(op) or op not in self._ops, data_producers)
            more = {
                op
                for op in behind - each
                if any(one.type == "VarHandleOp" and one.name in written for one in data_producers(op))
            }
            if not more:
                return each
            reading |= more

    def _find_varying(self, reading: Set[Operation]) -> set[Operation]:
        each = set(reading)
        combined: set[Operation] = set()  # operations that read what is combined
        for op in sorted(self._ops, key=lambda op: op._id):
            if op in self.core:
                if self._effects.of(op) is Effect.DRAW or any(_is_batch(one) or one in each for one in data_producers(op)):
                    each.add(op)
                continue
            varying = [one for one in op.inputs if _is_batch(one.op) or (one.op in each and one.name not in self.reduced)]
            after = [one for one in op.inputs if one.op in combined]
            if varying and after:
                raise self._mixed(op, varying[0], after[0])
            if varying:
                each.add(op)
            elif after or any(one.op in each for one in op.inputs):
                combined.add(op)
        return each

    def _mixed(self, op: Operation, varying: Tensor, after: Tensor) -> Exception:
        return refused(
            op,
            f"{op.name!r} ({op.type}) reads {varying.name!r}, which is different in each {self._part}, together with {after.name!r}, "
            "which is computed from the loss or gradients of the whole batch.",
            expected="operations that read either the rows of a batch, or its loss and gradients",
            fix=f"{_WITHOUT[self._part]}, or compute this from the loss alone.",
        )

    def _add_up_equal_rows(self) -> None:
        """Adds up the rows of sparse gradients whose indices depend on no batch, e.g., of positions: they are the same in each part."""
        for gradient in (one for part in self.derivations for one in part.gradients if isinstance(one, tf.IndexedSlices)):
            if gradient.values.op in self.each and gradient.indices.op not in self.each:
                self.reduced[gradient.values.name] = Reduction.COMBINE

    def _check_writes(self, allowed: bool) -> None:
        metrics = {variable.op.name for variable in self._model.collection(v1.GraphKeys.METRIC_VARIABLES)}
        trained = {variable.op.name for variable in self._model.variables() if variable.trainable}
        for name, op in sorted(writes(self.each), key=lambda pair: pair[1]._id):
            if name in trained:
                raise refused(
                    op,
                    f"{op.name!r} ({op.type}) changes the trained variable {name!r} by something else than gradients of the whole batch.",
                    expected="gradients by minimize, compute_gradients or tf.gradients, and what is computed from them alone",
                    fix=f"{_WITHOUT[self._part]}.",
                )
            if name not in metrics and not allowed:
                raise refused(
                    op,
                    f"{op.name!r} ({op.type}) changes the variable {name!r} by values of the batch, of which each micro-batch has a part.",
                    expected="variables that only losses and gradients change, and those of tf.metrics",
                    fix="Train without --micro, or add --micro-statistics to let batch norm and the like see one micro-batch at a time.",
                )
        for op in self._before:
            if self._effects.of(op) is Effect.CHANGE and not self.each.isdisjoint(self._upstream([op])):
                raise refused(
                    op,
                    f"{op.name!r} ({op.type}) must run once a step, between two operations that run for each {self._part}.",
                    expected="operations that change state before the loss is computed, or after the gradients",
                    fix=f"{_WITHOUT[self._part]}.",
                )

    def _check_updates(self, plan: Plan) -> None:
        for update in plan.updates:
            for tensor in (*update.gradients(), *update.changing().values()):
                if self.varies(tensor):
                    raise refused(
                        tensor.op,
                        f"{type(update.optimizer).__name__} reads {tensor.name!r}, which is different in each {self._part} and no gradient "
                        "by tf.gradients.",
                        expected="gradients by minimize, compute_gradients or tf.gradients, and what is computed from them",
                        fix=f"{_WITHOUT[self._part]}.",
                    )

    def _check_rows(self) -> None:
        """Refuses sparse gradients whose rows of the whole batch are unknown, if something else than an optimizer reads them."""
        sparse = [one for part in self.derivations for one in part.gradients if isinstance(one, tf.IndexedSlices)]
        readers = {tensor.name: op for op in self._ops - self.each for tensor in op.inputs}
        for gradient in sparse:
            if gradient.values.name in readers and names_rows_once(gradient.indices) is None:
                raise refused(
                    readers[gradient.values.name],
                    f"{readers[gradient.values.name].name!r} reads the sparse gradient {gradient.values.name!r}, whose variable is looked up "
                    "in several ways.",
                    expected="one lookup of a variable, or gradients that only an optimizer reads",
                    fix=f"{_WITHOUT[self._part]}, or look up all ids of a batch at once.",
                )

    def _upstream(self, ops: Iterable[Operation]) -> set[Operation]:
        return upstream(ops, lambda op: is_source(op) or op not in self._ops)

    def _divide(self, stage: Stage) -> Part:
        references = self._model.references
        each, before = stage.operations & self.each, stage.operations & self._before
        after = stage.operations - each - before
        again = read_again(after, references)
        self._check_order(each - self.core, after)
        outputs = [*stage.fragment.outputs]
        of_each = _outputs(each, [*outputs, *_inputs(after), *self._weights, *self._combined])
        of_before = _outputs(before, [*outputs, *_inputs(each | after)])
        placeholders = list(self._model.batch)
        changes = any(self._effects.of(op) is Effect.CHANGE for op in before)
        return Part(
            # At the end of the input, what waits for no batch would run.
            Stage.cut(before, [*of_before, *(placeholders if changes else ())], references),
            Stage.cut(each, [*of_each, *placeholders], references),
            Stage.cut(after | again, _outputs(after, outputs), references, stage.updates),
        )

    def _check_order(self, beside: Set[Operation], after: Set[Operation]) -> None:
        waited_for = self._upstream(beside) & after
        for name, op in writes(waited_for):
            if any(
                one.op.name == name
                for reader in self._upstream(beside)
                for one in reader.inputs
                if one.op.type == "VarHandleOp"
            ):
                raise refused(
                    op,
                    f"Operations on the batch wait for the change of {name!r} in the same step, and read this variable.",
                    expected="metrics and the like that are computed before the update, or an optimizer of tf.train",
                    fix=f"{_WITHOUT[self._part]}.",
                )


def _is_batch(op: Operation) -> bool:
    return is_source(op) and op.type != "VarHandleOp"


def _inputs(ops: Collection[Operation]) -> list[Tensor]:
    return [tensor for op in ops for tensor in op.inputs if not is_copied(tensor.op)]


def _outputs(ops: Collection[Operation], wanted: Iterable[Tensor]) -> list[Tensor]:
    return list({tensor.name: tensor for tensor in wanted if tensor.op in ops}.values())
