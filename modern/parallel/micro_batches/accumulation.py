"""Training steps whose batch is computed in micro-batches: memory for one of them, and the update of the whole batch."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import (
    BATCH,
    Fragment,
    Operation,
    Tensor,
    data_producers,
    is_source,
    refused,
    upstream,
)
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation, v1
from estimator_bridge.modern.graph.optimizers.capture import Derivation, Update, components, scaled_losses, sums_loss
from estimator_bridge.modern.graph.random_streams import RandomStreams
from estimator_bridge.modern.graph.stages import Plan, Stage
from estimator_bridge.modern.graph.variables import VariableStore, assigned, writes
from estimator_bridge.modern.parallel.micro_batches.division import Division, Part
from estimator_bridge.modern.parallel.micro_batches.loop import Loop, MicroBatches, WholeBatches
from estimator_bridge.modern.parallel.micro_batches.pipeline import Piece, PipelinedLoop, check_draws, pieces
from estimator_bridge.modern.parallel.micro_batches.reductions import Reduction, losses_of, names_rows_once, of_gradients
from estimator_bridge.modern.parallel.micro_batches.regularization import Regularization
from estimator_bridge.modern.parallel.micro_batches.replicas import check_equal_updates, must_combine, over_replicas
from estimator_bridge.modern.parallel.micro_batches.row_checks import check_of, draws
from estimator_bridge.modern.step.split_checks import adds_up_rows, common_divisor, nonlinear_part, own_quotients
from estimator_bridge.modern.step.transplant import Parts, Transplant, scaled

logging = tf.compat.v1.logging


class _Divisor(NamedTuple):
    """A number by which losses divide their sums over the batch, e.g., the sum of weights.

    Attributes:
        of_part: Tensor that computes it from a micro-batch.
        of_batch: Placeholder that losses and gradients read instead.
    """

    of_part: Tensor
    of_batch: Tensor


class AccumulatingTransplant(Transplant):
    """A transplant that computes losses and gradients of one micro-batch after the other, and applies those of the whole batch.

    What the script does between its gradients and its optimizers, e.g., clipping by the global norm, runs once on the gradients of the
    whole batch. Metrics see all rows. Other tensors that are watched are those of the last micro-batch. Where what the script does is right
    for the gradients of all replicas alone, these are combined first, too.

    Args:
        model: Training graph, built for one micro-batch.
        report: Groups of tensors of the graph to watch besides a step's loss.
        split: True if each replica takes part of one batch, False if each takes a batch of its own.
        streams: Streams of random numbers, see ``Transplant``.
        number: Number of micro-batches of each replica's batch.
        statistics: True to let batch norm and the like see one micro-batch at a time.
        place: Function that chooses devices, see ``Transplant``.
        stages: Devices of the stages of a pipeline, whose micro-batches overlap; empty for one micro-batch after the other.
        timed: True to measure when each stage of a pipeline computes.

    Attributes:
        times: Variables of the times, see ``PipelinedLoop``.

    Raises:
        NotSupportedError: The sum over the micro-batches would not be the result of the whole batch.
    """

    _sums = _declares_sum = False
    _may_combine = True
    _divisor: _Divisor | None = None
    _counted: Tensor | None = None

    def __init__(
        self,
        model: ModelGraph,
        report: Sequence[Sequence[Tensor]] = (),
        split: bool = False,
        streams: RandomStreams | None = None,
        *,
        number: int,
        statistics: bool = False,
        place: Callable[[ModelGraph, Plan], Mapping[str, str]] | None = None,
        stages: Sequence[Sequence[str]] = (),
        timed: bool = False,
    ) -> None:
        self._timed = timed
        self._number = number
        self._pipeline = stages
        self._shared = streams or (RandomStreams() if stages else None)
        self._regularization: Regularization | None = None
        self._statistics = statistics
        self._is_combined = self._may_combine and must_combine(model, split, self.replicas)
        super().__init__(model, report, split, streams, place=place)

    def _planned(self, report: Sequence[Sequence[Tensor]]) -> Plan:
        self._divisor = self._divisor or self._replaced_divisor()
        made = super()._planned(report)
        self._counted = None if self._divisor else self._own_divisor()
        part = "replica" if self._is_combined and self._number == 1 else "micro-batch"
        self._division = Division(
            self.model, made, self._statistics, self._reduced(made), self._counted, part, self._is_combined
        )
        self._prepare_losses()
        self._check_parts()
        return made

    def _check_parts(self) -> None:
        """Refuses what the loops over the parts cannot compute, before anything is placed or computed."""
        operations = [part.each.operations & self._division.core for part in self._division.parts]
        for inside in operations if self._pipeline else ():
            check_draws(inside)
        checked = [ops for part, ops in zip(self._division.parts, operations, strict=True) if self._is_checked(part)]
        are_sums = self._divisor or (self._sums and not self._declares_sum)
        if are_sums and self._needs_independent_rows and all(map(draws, checked)):
            raise _refused("its loss adds up the batch, which its first batch cannot show", self.model.spec.loss.op)

    def _is_checked(self, part: Part) -> bool:
        """Returns True if a ``RowCheck`` looks at a part of a step."""
        is_first = not any(tensor.op in self._division.each for tensor in part.each.fragment.inputs)
        return is_first and (self._needs_independent_rows or self._checks_pieces)

    def _reduced(self, made: Plan) -> Mapping[str, Reduction] | None:
        """Returns the tensors that are combined, by name; None to leave that to ``Division``."""
        return None

    def _prepare_losses(self) -> None:
        """Refuses losses that micro-batches do not make up, and finds what a sum over them would count too often."""
        if self._number == 1:
            self._declares_sum = sums_loss(self.model.graph)
            return
        losses = losses_of(self.model, self._division.derivations)
        self._declares_sum = sums_loss(self.model.graph)
        parts = [part for part in self._division.parts if part.each.operations & self._division.core]
        at_once = len(parts) == 1  # else the first batch shows some of them alone
        self._sums = self._declares_sum or (at_once and adds_up_rows(losses) and self._sums_can_be_checked(losses))
        self._check_losses(losses, at_once)
        if self._regularization is None and self._sums:  # once: later the graph is finished
            self._regularization = Regularization(losses, self._division.derivations, self._division.each)

    @property
    def parts(self) -> Parts | None:
        """Parts of which a step sees one batch: pieces of replicas, or micro-batches."""
        if not self._computes_parts:
            return super().parts
        return super().parts or Parts("the last micro-batch", "each micro-batch has a part", "Train without --micro")

    def is_whole(self, tensor: Tensor) -> bool:
        """Returns True for losses, gradients, what is computed from them, and what depends on no batch."""
        if not (self._computes_parts or self._split):
            return super().is_whole(tensor)
        return (self._is_combined or super().is_whole(tensor)) and not self._division.varies(tensor)

    @property
    def _computes_parts(self) -> bool:
        """True if a step sees one part of its batch after the other."""
        return self._number > 1

    def _writes_of_replicas(self) -> list[tuple[str, Operation]]:
        return list(writes(self._division.each)) if self._is_combined else super()._writes_of_replicas()

    def _updates_of_replicas(self) -> Sequence[Update]:
        return () if self._is_combined else super()._updates_of_replicas()

    def _check_replicas(self, variables: Sequence[Any], written: frozenset[str]) -> None:
        if not self._is_combined:
            super()._check_replicas(variables, written)
            return
        once = [op for part in self._division.parts for op in (*part.before.operations, *part.after.operations)]
        trained = {variable.op.name for variable in variables if variable.trainable}
        updates = [op for name, op in writes(once) if name in trained]
        updates += [tensor.op for update in self._plan.updates for tensor in update.gradients()]
        check_equal_updates(once, updates, written)
        if not self._split:
            way = "sum" if sums_loss(self.model.graph) else "mean"
            logging.info("What changes variables by gradients runs once, on the %s of those of %d batches.", way, self.replicas)

    def _import(self) -> None:
        reduced = self._division.reduced
        joined = frozenset(name for name, way in reduced.items() if way in (Reduction.JOIN, Reduction.INDICES))
        store, apart = self._store_of_all(self._shared), self._store_of_all(None)  # checks draw from streams of their own

        def function(fragment: Fragment) -> Any:
            return store.function(dataclasses.replace(fragment, of_any_length=joined))

        self._once: Any = self._regularization.function(store.function) if self._regularization else dict
        self._stages: list[tuple[Stage, Any]] = []
        self.times: list[Any] = []
        leaves = [leaf.name for leaf in self.model.batch]
        later = set[str]()  # what loops read
        divisor = self._divisor.of_batch.name if self._divisor else ""
        for part in reversed(self._division.parts):
            run: Any = store.function(part.each.fragment)
            own = part.each.fragment, run, leaves, reduced, self._unique(), frozenset(later), self._sums
            loop = self._pipelined(own, self._pieces(part.each, store)) if self._pipeline else Loop(*own)
            loop.divisor = divisor
            if self._is_checked(part):
                ops = part.each.operations & self._division.core
                sums = None if self._declares_sum else self._sums
                made = ops, part.each.fragment.outputs, reduced, apart.function, leaves, sums, self._once, divisor
                loop.check = check_of(*made, may_skip=self._checks_pieces)
            runs = [
                (part.before, function(part.before.fragment)),
                (part.each, loop),
                (part.after, function(part.after.fragment)),
            ]
            self._stages[:0] = [pair for pair in runs if pair[0].operations or pair[0].updates]
            later |= {tensor.name for tensor in part.each.fragment.inputs} - set(leaves)
        self._whole_divisor = self._divisor_function(self._divisor.of_part, store) if self._divisor else None
        self.observers = [(one, function(one.early), function(one.late)) for one in self.observations]

    def _pipelined(self, own: Any, parts: Sequence[Piece]) -> Loop:
        loop = PipelinedLoop(*own, number=self._number, pieces=parts, timed=self._timed)
        self.times.insert(0, loop.times)
        return loop

    def _pieces(self, each: Stage, store: VariableStore) -> list[Piece]:
        losses = losses_of(self.model, self._division.derivations)
        forward = upstream([loss.op for loss in losses], is_source)
        own = self._devices, self._pipeline, self.model.references
        return pieces(each, self._division.core, forward, *own, store.function)

    @functools.cached_property
    def _checks_pieces(self) -> bool:
        """True if the first batch shows whether pieces of replicas make it up: not beside batch norm, which sees a piece in any case."""
        if not (self._split and self._number == 1):
            return False
        metrics = {variable.op.name for variable in self.model.collection(v1.GraphKeys.METRIC_VARIABLES)}
        own = sorted(assigned(self._division.each) - metrics)
        if own:
            logging.warn(
                "Whether the rows of a batch depend on each other is not checked, since each replica changes %s by its own rows.",
                own[0],
            )
        return not own

    @property
    def _needs_independent_rows(self) -> bool:
        return not self._statistics

    def _sums_can_be_checked(self, losses: Sequence[Tensor]) -> bool:
        """Returns True if ``RowCheck`` can tell sums from means: parts have halves, in which nothing is drawn otherwise."""
        if not self._needs_independent_rows:
            return False
        batch = tf.nest.flatten(self.model.pipeline.with_leaves(list(self.model.batch)))
        any_size = all(one.shape.rank != 0 and one.shape[0] is None for one in batch if tf.is_tensor(one))
        return any_size and not draws(upstream([loss.op for loss in losses], is_source))

    def _micro_batches(self, batches: Sequence[Sequence[Tensor]]) -> MicroBatches:
        (batch,) = batches
        if self._number == 1:
            return WholeBatches([batch])
        return MicroBatches(self.model.pipeline, self._number, batch)

    def _outputs_of(
        self, fragment: Fragment, run: Any, known: Mapping[str, Tensor], batches: Sequence[Sequence[Tensor]]
    ) -> dict[str, Tensor]:
        if not isinstance(run, Loop):
            made = super()._outputs_of(fragment, run, known, batches)
            same = [name for name, way in self._shares.items() if name in made and way in (Reduction.COMBINE, Reduction.JOIN)]
            return made | {name: scaled(made[name], float(self.replicas)) for name in same}
        micro = self._micro_batches(batches)
        checked = micro if self._number > 1 else None
        if self._checks_pieces and self.whole is not None:
            checked = MicroBatches(self.model.pipeline, self.pieces, self.whole)
        if self._divisor and self._whole_divisor:
            # The mean of the parts' sums, each divided by its share of the batch's divisor, is the sum of all divided by that divisor.
            whole = self._whole_divisor(batches[0])
            known = {**known, self._divisor.of_batch.name: whole / tf.cast(micro.count, whole.dtype)}
        with tf.control_dependencies([run.check.run(checked, known)] if run.check and checked else []):
            values = run.run(micro, known, self._once() if self._sums else {})
        return self._over_replicas(values, batches[-1]) if self._is_combined else values

    def _over_replicas(self, values: Mapping[str, Any], batch: Sequence[Tensor]) -> dict[str, Any]:
        """Combines losses and gradients of all replicas, which go on with the same values."""
        mean = None if sums_loss(self.model.graph) else 1.0 / self.replicas
        weights = dict.fromkeys(self._division.reduced, super()._weight(batch) if self._split else mean)
        return over_replicas(values, self._division.reduced, weights | dict.fromkeys(self._shares), self._unique())

    @property
    def _shares(self) -> Mapping[str, Reduction]:
        """Tensors of gradients that are a replica's share: those of a loss that ``compute_gradients`` divided by the replicas."""
        divided = scaled_losses(self.model.graph) if self._is_combined else set()
        shares = [one for one in self._division.derivations if divided.issuperset(loss.name for loss in one.losses)]
        return of_gradients(gradient for one in shares for gradient in one.gradients)

    def _weight(self, batch: Sequence[Tensor]) -> Tensor | None:
        return None if self._is_combined else super()._weight(batch)

    def _combined(self, loss: Tensor, weight: Tensor | None) -> Tensor:
        return loss if self._is_combined else super()._combined(loss, weight)

    def _update(self, optimizer: Any, pairs: Sequence[tuple[Any, Any]]) -> None:
        if not self._is_combined:
            super()._update(optimizer, pairs)
            return
        own = [(gradient, self.store[variable]) for gradient, variable in pairs]
        optimizer.apply_gradients(own, experimental_aggregate_gradients=False)

    def _unique(self) -> dict[str, str]:
        """Returns the gradients whose rows of all micro-batches are added up: name of indices -> name of values."""
        sparse = [one for part in self._division.derivations for one in part.gradients if isinstance(one, tf.IndexedSlices)]
        return {one.indices.name: one.values.name for one in sparse if names_rows_once(one.indices)}

    def _replaced_divisor(self) -> _Divisor | None:
        """Makes losses and gradients read the divisor of the whole batch, if there is one and their sums can be checked."""
        derivations = self._derivations()
        losses = losses_of(self.model, derivations)
        is_possible = self._sums_can_be_checked(losses) and not sums_loss(self.model.graph)
        divisor = common_divisor(losses) if is_possible else None
        if divisor is None:
            return None
        gradients = components(gradient for one in derivations for gradient in one.gradients)
        readers = upstream([tensor.op for tensor in (*losses, *gradients)], is_source) & set(divisor.consumers())
        with self.model.graph.as_default():
            of_batch = v1.placeholder_with_default(divisor, [], f"{BATCH}_{divisor.op.name}")
        for op in readers:
            for place, tensor in enumerate(op.inputs):
                if tensor.name == divisor.name:
                    op._update_input(place, of_batch)
        return _Divisor(divisor, of_batch)

    def _own_divisor(self) -> Tensor | None:
        """Returns the divisor of each micro-batch, if its weighted mean is all that losses compute of it."""
        losses = losses_of(self.model, self._derivations())
        quotients = own_quotients(losses) if self._needs_independent_rows and not sums_loss(self.model.graph) else []
        known = {one.name for one in self.model.collection(v1.GraphKeys.LOSSES)}  # TensorFlow's own add up rows
        if not quotients or not (self._sums_can_be_checked(losses) or all(op.outputs[0].name in known for op in quotients)):
            return None
        return quotients[0].inputs[1]

    def _derivations(self) -> list[Derivation]:
        ran = upstream([operation(self.model.spec.train_op), self.model.spec.loss.op], is_source)
        return [one for one in self.model.derivations if not ran.isdisjoint(part.op for part in components(one.gradients))]

    def _divisor_function(self, divisor: Tensor, store: VariableStore) -> Callable[[Sequence[Tensor]], Tensor]:
        fragment = Fragment.cut(upstream([divisor.op], is_source, data_producers), [divisor])
        run = self.model.batch_function(fragment, store)
        return lambda batch: run(batch)[0]

    def _check_losses(self, losses: Sequence[Tensor], at_once: bool) -> None:
        is_accepted = ((self._divisor is not None or self._counted is not None) and at_once) or (
            self._statistics and not adds_up_rows(losses)
        )
        for loss in () if is_accepted else losses:
            problem = nonlinear_part(loss, self._sums)
            if problem is not None:
                raise _refused(*problem)


def _refused(why: str, op: Operation) -> NotSupportedError:
    return refused(
        op,
        f"The micro-batches of this model do not make up its batch: {why}.",
        expected="a loss that is the mean over the batch, or declared as a sum (tf.losses.Reduction.SUM)",
        fix="Train without --micro, or write the loss as a mean over the rows.",
    )


def whole_batches(
    model: ModelGraph,
    report: Sequence[Sequence[Tensor]] = (),
    split: bool = False,
    streams: RandomStreams | None = None,
    **own: Any,
) -> Transplant:
    """Makes a step without micro-batches; replicas combine gradients before the script changes them, where that is needed.

    Args:
        model: Training graph.
        report: Groups of tensors of the graph to watch besides a step's loss.
        split: True if each replica takes part of one batch, False if each takes a batch of its own.
        streams: Streams of random numbers, see ``Transplant``.
        own: Other arguments of ``Transplant``.
    """
    if must_combine(model, split, tf.distribute.get_strategy().num_replicas_in_sync):
        return AccumulatingTransplant(model, report, split, streams, number=1, statistics=True, **own)
    return Transplant(model, report, split, streams, **own)
