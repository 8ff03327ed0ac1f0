"""Check that the rows of a batch do not depend on each other, and count alike: only then do micro-batches make up the batch.

Two micro-batches of the first batch exchange half of their rows. Losses and gradients must add up to the same as before. They do not if
the rows of a batch are normalised together, serve as each other's negatives, or are weighted by a sum over the batch. And those of a
micro-batch must be the mean of those of its halves. They are not if the loss adds up rows in a way that its operations do not show.

A few later batches are checked, too: a term of the loss may count from a later step on.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.distribution.input_sharding import UNEQUAL
from estimator_bridge.modern.graph.fragments import Fragment, Operation, Tensor, data_producers, is_source, upstream
from estimator_bridge.modern.graph.side_effects import Effect, Effects
from estimator_bridge.modern.parallel.micro_batches.loop import MicroBatches, looped, weight_of
from estimator_bridge.modern.parallel.micro_batches.reductions import Reduction
from estimator_bridge.modern.step.split_checks import OF_SHAPE_ALONE

logging = tf.compat.v1.logging
_TOLERANCE = 1e-3
"""Largest part of a tensor's norm that is rounding."""
_NOISE = 1e-6
"""Part of the norm of all gradients below which a gradient is nothing but rounding."""
_LATER = 100
"""Batches 1, 100, 10,000 and so on are checked: more often, the checks would show in the time of a step."""
_LARGE = 65_536
"""Elements from which a gradient is compared by random projections: in float64 all of them would take more memory than a step."""
_PROBES, _COLUMNS = 16, 1024
_MARK, _NO_MEAN, _TOO_FEW = (f"estimator_bridge: {what}" for what in ("dependent rows", "no mean", "too few rows"))


class RowCheck:
    """Check of the operations of a micro-batch, at some of the batches.

    Args:
        ops: Operations that losses and gradients are computed by, for each micro-batch.
        outputs: Losses and gradients.
        reduced: Name of a tensor -> way to combine its values.
        function: Function that makes a function of a fragment.
        leaves: Names of the tensors of a batch.
        sums: True if losses must be sums over the rows, False for means; None for sums that are declared, which are not checked.
        once: Function that returns what each sum adds, but the batch has once: name of a loss or gradient -> value.
        divisor: Name of the number by which sums are divided, which makes means of them, see ``Loop.divisor``; empty without one.
        may_skip: True to accept a first batch that has too few rows.
    """

    def __init__(
        self,
        ops: Collection[Operation],
        outputs: Sequence[Tensor],
        reduced: Mapping[str, Reduction],
        function: Callable[[Fragment], Any],
        leaves: Sequence[str],
        sums: bool | None,
        once: Callable[[], Mapping[str, Tensor]],
        divisor: str = "",
        may_skip: bool = False,
    ) -> None:
        self._may_skip = may_skip
        self._sums = sums
        self._divisor = divisor
        self._once = once
        drawn = draws(ops)
        drawing = {one.op for one in drawn}
        ways = [(one, reduced.get(one.name)) for one in outputs]
        self._outputs = [(one, way) for one, way in ways if way in (Reduction.COMBINE, Reduction.JOIN)]
        self._leaves = leaves
        weights = [one for one, way in ways if way is Reduction.WEIGHT]
        self._is_weighted = bool(weights)
        ends = [*(one for one, _ in self._outputs), *weights]
        self._draws = Fragment.cut(upstream(drawing, lambda op: op not in ops, data_producers), drawn)
        rest = upstream([one.op for one in ends], lambda op: op not in ops or op in drawing)
        self._fragment = Fragment.cut(rest, ends, {one.name for one in drawn})
        self._draw, self._compute = function(self._draws), function(self._fragment)
        self._taken, self._next = (ResourceVariable(tf.constant(number, tf.int64), trainable=False) for number in (0, 1))

    def run(self, micro: MicroBatches, known: Mapping[str, Any]) -> Operation:
        """Returns an operation that fails if rows depend on each other; it computes something for the batches 1, 100 and so on alone.

        Args:
            micro: Batch.
            known: Inputs of the operations by their names, other than the batch.
        """
        taken, following = self._taken + 1, self._next.read_value()
        must_check = tf.equal(taken, 1) & (not self._may_skip)
        is_due = (taken >= following) & (must_check | (micro.rows_of_smallest >= self._least))
        checked = tf.cond(is_due, lambda: self._compare(micro, known), lambda: tf.constant(False))
        following = tf.where(checked, _LATER * following, following)
        return tf.group(self._taken.assign(taken, read_value=False), self._next.assign(following, read_value=False))

    @property
    def _least(self) -> int:
        return 4 if self._sums or self._divisor else 2  # sums are seen by halves alone

    def _compare(self, micro: MicroBatches, known: Mapping[str, Any]) -> Tensor:
        least = self._least
        enough = tf.debugging.Assert(micro.rows_of_smallest >= least, [_TOO_FEW, micro.rows_of_smallest, least])
        with tf.control_dependencies([enough] if enough is not None else []):
            inputs = {**known, **dict(zip(self._leaves, micro.exchanged(tf.constant(0, tf.int64)), strict=True))}
        # Each exchange needs the same random numbers.
        values = self._draw([inputs[one.name] for one in self._draws.inputs])
        inputs |= dict(zip((one.name for one in self._draws.outputs), values, strict=True))

        halves_fit = micro.may_have_any_size and self._sums is not None and not self._draws.outputs
        has_halves = tf.cast((micro.half_of_smallest > 0) & halves_fit, tf.float64)
        part = micro.half_of_smallest / micro.rows_of_smallest
        halves = [-1.0, -1.0] if self._sums or self._is_weighted else [-part, part - 1.0]
        weights = tf.stack(
            [[1.0, 1.0, -1.0, -1.0, 0.0, 0.0], has_halves * tf.cast(tf.stack([1.0, 0.0, 0.0, 0.0, *halves]), tf.float64)]
        )

        def body(index: Tensor, sums: Sequence[Tensor], sizes: Sequence[Tensor]) -> tuple[Any, ...]:
            own = inputs | dict(zip(self._leaves, micro.exchanged(index), strict=True))
            if self._divisor in own:
                shares = tf.stack([1.0, 1.0, 1.0, 1.0, part, 1.0 - part])
                own[self._divisor] *= tf.cast(shares[index], own[self._divisor].dtype)
            results = self._compute([own[one.name] for one in self._fragment.inputs])
            weight = tf.cast(weight_of(results[-1]), tf.float64) if self._is_weighted else 1.0
            totals = [weight * _total(one, way) for one, (_, way) in zip(results, self._outputs, strict=False)]
            added = [old + tf.tensordot(weights[:, index], one, 0) for old, one in zip(sums, totals, strict=True)]
            return index + 1, added, [old + _norm(one) for old, one in zip(sizes, totals, strict=True)]

        zeros = [tf.zeros([], tf.float64) for _ in self._outputs]
        count = 4 + 2 * tf.cast(has_halves, tf.int64)
        _, sums, sizes = looped(lambda index, *_: index < count, body, [tf.constant(0, tf.int64), zeros, zeros])
        once = self._once() if self._sums else {}
        sums = [
            total + tf.tensordot(tf.constant([0.0, 1.0], tf.float64), _total(once[one.name], way), 0)
            if one.name in once
            else total
            for total, (one, way) in zip(sums, self._outputs, strict=True)
        ]
        norms = tf.stack(sizes)
        checks = [self._zero(mark, [one[number] for one in sums], norms) for number, mark in enumerate((_MARK, _NO_MEAN))]
        with tf.control_dependencies([check for check in checks if check is not None]):
            return tf.constant(True)

    def _zero(self, mark: str, sums: Sequence[Tensor], norms: Tensor) -> Operation | None:
        """Returns an operation that fails, with a mark, if a sum is more than rounding."""
        excess = tf.stack([_norm(one) for one in sums]) - _TOLERANCE * norms - _NOISE * tf.reduce_max(norms)
        worst = tf.gather([one.name for one, _ in self._outputs], tf.argmax(excess))
        is_zero = tf.reduce_all((excess <= 0) | ~tf.math.is_finite(excess))  # a loss that is NaN ends the training anyway
        return tf.debugging.Assert(is_zero, [mark, worst])


def check_of(
    ops: Collection[Operation],
    outputs: Sequence[Tensor],
    reduced: Mapping[str, Reduction],
    function: Callable[[Fragment], Any],
    leaves: Sequence[str],
    sums: bool | None,
    once: Callable[[], Mapping[str, Tensor]],
    divisor: str = "",
    may_skip: bool = False,
) -> RowCheck | None:
    """Returns the check of some operations; None, with a warning, if random numbers depend on the values of a batch."""
    values_of = upstream([one.op for one in draws(ops)], lambda op: op.type in OF_SHAPE_ALONE, data_producers)
    if any(is_source(op) and op.type != "VarHandleOp" for op in values_of):
        logging.warn(
            "Whether the rows of a batch depend on each other could not be checked, since random numbers depend on them."
        )
        return None
    return RowCheck(ops, outputs, reduced, function, leaves, sums, once, divisor, may_skip)


@contextlib.contextmanager
def row_refusals(micro: int) -> Iterator[None]:
    """While active, replaces the error of a failed ``RowCheck``; of another failed step in several micro-batches it tells what to try.

    Args:
        micro: Number of micro-batches of a step; with 1, replicas have pieces of a batch.

    Raises:
        NotSupportedError: The rows of a batch depend on each other, there are too few of them, or some tensors have more than others.
    """
    parts, without = (
        ("micro-batches", "Train without --micro") if micro > 1 else ("pieces of the replicas", "Run on one replica")
    )
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        if UNEQUAL in error.message:
            raise NotSupportedError(
                "Features and labels of a batch have different numbers of rows, so no part can be cut out of them.",
                expected="features and labels with the batch as first axis",
                fix=f"{without}.",
            ) from error
        found = re.search(rf"({_MARK}|{_NO_MEAN}|{_TOO_FEW})\W+([\w./:-]+)(?:\W+(\d+))?", error.message)
        if found is None:
            if micro > 1:
                logging.warn(
                    "The step that failed computes micro-batches. If it does not fail without --micro, the model needs the rows of a whole "
                    "batch together: for a fixed batch size, or for the length of their longest sequence."
                )
            raise
        if found[1] == _TOO_FEW:
            raise NotSupportedError(
                "The first batch has too few rows for the number of micro-batches.",
                expected=f"at least {found[3]} rows in each micro-batch, by which their independence is checked",
                received=f"{found[2]} in some of them",
                fix="Give --micro a smaller number.",
            ) from error
        if found[1] == _NO_MEAN:
            raise NotSupportedError(
                f"The {parts} do not make up the batch of this model: its loss is neither the mean nor the sum over the rows.",
                expected="losses and gradients of a part that are the mean of those of its halves, or the sum, if the loss is one",
                received=f"another value of {found[2]!r}",
                fix=f"{without}, or write the loss as a mean over the rows.",
            ) from error
        raise NotSupportedError(
            f"The rows of a batch depend on each other, so the {parts} do not make up the batch of this model.",
            expected="losses and gradients that add up to the same when two parts exchange half of their rows",
            received=f"another value of {found[2]!r}",
            fix=f"{without}, or add --micro-statistics to let batch norm, negatives of the same batch and the like see one micro-batch "
            "at a time."
            if micro > 1
            else f"{without}, or set RunConfig(train_distribute=...), so that each replica takes whole batches.",
        ) from error


def draws(ops: Collection[Operation]) -> list[Tensor]:
    """Returns the random numbers that operations draw."""
    if not ops:
        return []
    effects = Effects(next(iter(ops)).graph)
    return [tensor for op in ops if effects.of(op) is Effect.DRAW for tensor in op.outputs]


def _norm(value: Tensor) -> Tensor:
    return tf.sqrt(tf.reduce_sum(tf.square(tf.reshape(value, [-1]))))


def _total(value: Tensor, way: Reduction) -> Tensor:
    """Returns a gradient, or the sum of the rows of a sparse one, in float64; of a large one its projections."""
    value = tf.math.real(value) if value.dtype.is_complex else value
    if way is Reduction.JOIN:
        return tf.reduce_sum(tf.cast(value, tf.float64), axis=0)
    return tf.cast(_projected(value) if (value.shape.num_elements() or 0) >= _LARGE else value, tf.float64)


def _projected(value: Tensor) -> Tensor:
    """Returns random projections, which are linear and whose norm is about that of the tensor: of its rows, and of their columns."""
    rows = -(-value.shape.num_elements() // _COLUMNS)
    flat = tf.reshape(value, [-1])
    missing = rows * _COLUMNS - value.shape.num_elements()
    matrix = tf.reshape(tf.pad(flat, [[0, missing]]) if missing else flat, [rows, _COLUMNS])
    left, right = (tf.random.stateless_normal([_PROBES, size], [size, 1], stddev=_PROBES**-0.5) for size in matrix.shape)
    return tf.matmul(left @ tf.cast(matrix, tf.float32), right, transpose_b=True)
