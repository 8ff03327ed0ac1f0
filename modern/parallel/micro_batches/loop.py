"""Rows of a batch in micro-batches, and the loop that runs a function for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.distribution.input_sharding import UNEQUAL
from estimator_bridge.modern.graph.fragments import Fragment, Tensor
from estimator_bridge.modern.graph.input_pipeline import InputPipeline
from estimator_bridge.modern.parallel.micro_batches.reductions import Reduction

_ADDED = (Reduction.COMBINE, Reduction.MEAN, Reduction.WEIGHT)


class MicroBatches:
    """Consecutive parts of a batch, whose numbers of rows differ by one at most.

    Args:
        pipeline: Pipeline of the input_fn.
        number: Number of parts; a batch with fewer rows has a part for each row.
        batch: Tensors of a batch, in the order of ``pipeline.leaves``.

    Attributes:
        number: Number of parts that was asked for.
        count: Number of parts as a scalar of int64.
        are_equal: True if all parts surely have the same number of rows.
    """

    def __init__(self, pipeline: InputPipeline, number: int, batch: Sequence[Tensor]) -> None:
        self.number = number
        flat = tf.nest.flatten(pipeline.with_leaves(list(batch)))
        self._tensors = [one for one in flat if tf.is_tensor(one)]
        sizes = {one.shape[0] for one in self._tensors if not isinstance(one, tf.SparseTensor)}
        (size,) = sizes if len(sizes) == 1 else (None,)
        self.are_equal = size is not None and size % number == 0
        self._static = size // number if size is not None and self.are_equal else None
        self._rows = rows_of(self._tensors[0])
        checks = [tf.debugging.assert_equal(rows_of(one), self._rows, UNEQUAL) for one in self._tensors[1:]]
        with tf.control_dependencies([check for check in checks if check is not None]):
            self.count = tf.clip_by_value(self._rows, 1, number)

    def part(self, index: Tensor) -> list[Tensor]:
        """Returns the tensors of one part, in the order of ``pipeline.leaves``."""
        return self._cut([self._limits(index)])

    def exchanged(self, index: Tensor) -> list[Tensor]:
        """Returns rows of the first two parts, each of the size of the smallest part, ``rows_of_smallest``, which must be at least 2.

        Args:
            index: 0, 1: the first or second part. 2, 3: those of both after an exchange of their second halves. 4, 5: the first or
                second half of the first part, which only parts of any size may have.
        """
        size = self.rows_of_smallest
        half, even = size // 2, self.half_of_smallest
        limits = tf.stack([
            ((0, half), (half, size)),
            ((size, size + half), (size + half, 2 * size)),
            ((0, half), (size + half, 2 * size)),
            ((size, size + half), (half, size)),
            ((0, even), (even, even)),
            ((even, size), (size, size)),
        ])[index]  # fmt: skip
        return self._cut([(limits[number, 0], limits[number, 1]) for number in range(2)])

    @property
    def may_have_any_size(self) -> bool:
        """True if the number of rows is unknown before the training."""
        return self._static is None

    @property
    def half_of_smallest(self) -> Tensor:
        """Number of rows of the first half of a part, which is even; 0 with less than 4 rows."""
        return self.rows_of_smallest // 4 * 2

    @property
    def rows_of_smallest(self) -> Tensor:
        """Number of rows that each part has at least."""
        return self._rows // self.count

    def _cut(self, limits: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
        with tf.device("/cpu:0"):  # only these rows are copied to the device of the model
            parts = [self._rows_of(one, limits) for one in self._tensors]
        flat: list[Tensor] = tf.nest.flatten(parts, expand_composites=True)
        return flat

    def share(self, index: Tensor, sums: bool) -> Tensor | None:
        """Returns the rows of a part, divided by the mean number of rows, as float32; None if all parts count the same.

        Args:
            index: Number of the part.
            sums: True if losses are added up, and so are those of parts of any size.
        """
        if self.are_equal or sums:
            return None
        start, end = self._limits(index)
        rows = tf.where(self._rows > 0, (end - start) * self.count, 1)  # an empty batch is one part
        return tf.cast(rows, tf.float32) / tf.cast(tf.maximum(self._rows, 1), tf.float32)

    def _limits(self, index: Tensor) -> tuple[Tensor, Tensor]:
        return index * self._rows // self.count, (index + 1) * self._rows // self.count

    def _rows_of(self, tensor: Any, limits: Sequence[tuple[Tensor, Tensor]]) -> Any:
        if isinstance(tensor, tf.SparseTensor):
            pieces = [_sparse_rows(tensor, *pair) for pair in limits]
            return pieces[0] if len(pieces) == 1 else tf.sparse.concat(0, pieces)
        pieces = [tensor[start:end] for start, end in limits]
        rows = pieces[0] if len(pieces) == 1 else tf.concat(pieces, 0)
        return tf.ensure_shape(rows, [self._static, *tensor.shape[1:]])


class WholeBatches(MicroBatches):
    """Batches of one step, each of which is a micro-batch.

    Args:
        batches: Flat tensors of each batch.
        shares: Rows of each batch, divided by the mean number of rows of all workers' batches; None if each batch counts the same.
    """

    def __init__(self, batches: Sequence[Sequence[Tensor]], shares: Tensor | None = None) -> None:
        self._batches = [list(batch) for batch in batches]
        self._shares = shares
        self.number = len(batches)
        self.are_equal = shares is None
        self.count = tf.constant(len(batches), tf.int64)

    def share(self, index: Tensor, sums: bool) -> Tensor | None:
        """Returns the share of a batch, also where the gradients of all batches are added up."""
        return None if self._shares is None else self._shares[index]

    def part(self, index: Tensor) -> list[Tensor]:
        """Returns the tensors of one batch."""
        if self.number == 1:
            return self._batches[0]
        own: list[Tensor] = tf.switch_case(tf.cast(index, tf.int32), [lambda batch=batch: batch for batch in self._batches])
        return own


def _sparse_rows(tensor: Any, start: Tensor, end: Tensor) -> Any:
    rest = tensor.dense_shape[1:]
    return tf.sparse.slice(tensor, tf.concat([[start], tf.zeros_like(rest)], 0), tf.concat([[end - start], rest], 0))


def rows_of(tensor: Any) -> Tensor:
    """Returns the number of rows of a tensor of a batch, as int64."""
    return tensor.dense_shape[0] if isinstance(tensor, tf.SparseTensor) else tf.shape(tensor, out_type=tf.int64)[0]


def weight_of(divisor: Tensor, count: Tensor | int = 1) -> Tensor:
    """Returns the weight of micro-batches with this sum of divisors; all count the same if no row has a weight.

    Args:
        divisor: Divisor of a weighted mean, see ``Reduction.WEIGHT``.
        count: Number of micro-batches.
    """
    return tf.cast(divisor, tf.float32) + 1e-30 * tf.cast(count, tf.float32)


class Loop:
    """Function of a whole batch that calls another one for each micro-batch, one after the other, and combines the results.

    Args:
        fragment: Operations of a micro-batch.
        call: Function of the fragment.
        leaves: Names of the tensors of a batch, in the order of ``MicroBatches.part``.
        reduced: Name of a tensor -> way to combine its values; others are those of the last micro-batch.
        unique: Names of indices whose rows are added up: indices -> values.
        kept: Names of outputs whose values of each micro-batch a later loop reads.
        sums: True to add up losses, False for the mean.

    Attributes:
        check: Check of the first batch, if any.
        divisor: Name of an input that is the mean of what the parts' sums are divided by; the part with more rows has more of it.
    """

    check: Any = None
    divisor = ""

    def __init__(
        self,
        fragment: Fragment,
        call: Callable[[Sequence[Tensor]], list[Tensor]],
        leaves: Sequence[str],
        reduced: Mapping[str, Reduction],
        unique: Mapping[str, str],
        kept: Collection[str],
        sums: bool,
    ) -> None:
        self._fragment = fragment
        self._call = call
        self._leaves = leaves
        self._unique = unique
        self._sums = sums
        self._kept = [number for number, tensor in enumerate(fragment.outputs) if tensor.name in kept]
        self._ways = [reduced.get(tensor.name, Reduction.LAST) for tensor in fragment.outputs]

    def run(self, micro: MicroBatches, known: Mapping[str, Any], once: Mapping[str, Tensor]) -> dict[str, Any]:
        """Runs all micro-batches.

        Args:
            micro: Batch.
            known: Inputs of the fragment by their names, and what earlier loops kept.
            once: Name of a sum over the micro-batches -> what each of them adds, but the batch has once.

        Returns:
            The combined tensors by their names, and what later loops read.
        """
        outputs = self._fragment.outputs
        values, kept = self._repeated(micro, known)
        arrays = {_key(outputs[number]): array for number, array in zip(self._kept, kept, strict=True)}
        by_name = dict(zip((tensor.name for tensor in outputs), self._finished(values), strict=True))
        for name in by_name.keys() & once.keys():
            by_name[name] -= tf.cast(micro.count - 1, by_name[name].dtype) * once[name]
        return arrays | by_name

    def _repeated(self, micro: MicroBatches, known: Mapping[str, Any]) -> Any:
        """Runs all micro-batches; returns the combined outputs, and the values of each micro-batch that later loops read."""

        def body(index: Tensor, *totals: Any) -> tuple[Any, ...]:
            own = self._own(micro, index, known)
            return index + 1, *self._add_to_totals(
                micro, index, self._call([own[one.name] for one in self._fragment.inputs]), totals
            )

        start = [tf.constant(0, tf.int64), *self._start_totals(micro)]
        _, *totals = body(*start) if micro.number == 1 else looped(lambda index, *_: index < micro.count, body, start)
        return self._end_totals(micro, totals)

    def _start_totals(self, micro: MicroBatches) -> tuple[list[Any], list[Any]]:
        """Returns what is combined and what is kept, before the first micro-batch."""
        count = tf.cast(micro.count, tf.int32)
        outputs = self._fragment.outputs
        states = [_start(way, tensor.dtype, count) for way, tensor in zip(self._ways, outputs, strict=True)]
        return states, [_array(outputs[number].dtype, count) for number in self._kept]

    def _add_to_totals(
        self, micro: MicroBatches, index: Tensor, values: Sequence[Tensor], totals: Any
    ) -> tuple[list[Any], list[Any]]:
        """Returns what is combined and what is kept, with the values of one more micro-batch."""
        states, kept = totals
        rows = micro.share(index, self._sums)
        weights = [weight_of(value) for way, value in zip(self._ways, values, strict=True) if way is Reduction.WEIGHT]
        shares = dict.fromkeys((Reduction.COMBINE, Reduction.JOIN), weights[0] if weights else rows) | {Reduction.MEAN: rows}
        added = []
        for way, state, value in zip(self._ways, states, values, strict=True):
            with tf.device(value.device if way in (Reduction.COMBINE, Reduction.MEAN) else None):
                added.append(_added(way, state, value, index, shares.get(way)))
        held = [array.write(tf.cast(index, tf.int32), values[number]) for number, array in zip(self._kept, kept, strict=True)]
        return added, held

    def _end_totals(self, micro: MicroBatches, totals: Any) -> tuple[list[Tensor], list[Any]]:
        states, kept = totals
        counts = {way: micro.count for way in (Reduction.COMBINE, Reduction.JOIN) if not self._sums}
        for way, state in zip(self._ways, states, strict=True):
            if way is Reduction.WEIGHT:
                counts = dict.fromkeys(counts, weight_of(state, micro.count))
        counts[Reduction.MEAN] = micro.count
        return [_ended(way, state, counts.get(way)) for way, state in zip(self._ways, states, strict=True)], kept

    def _own(self, micro: MicroBatches, index: Tensor, known: Mapping[str, Any]) -> dict[str, Tensor]:
        """Returns the inputs of one micro-batch by their names."""
        own = dict(zip(self._leaves, micro.part(index), strict=True))
        for tensor in self._fragment.inputs:
            if tensor.name not in own:
                array = known.get(_key(tensor))
                own[tensor.name] = known[tensor.name] if array is None else array.read(tf.cast(index, tf.int32))
                own[tensor.name].set_shape(tensor.shape)
        share = micro.share(index, self._sums)
        if self.divisor in own and share is not None:
            own[self.divisor] *= tf.cast(share, own[self.divisor].dtype)
        return own

    def _finished(self, values: list[Tensor]) -> list[Tensor]:
        by_name = {tensor.name: number for number, tensor in enumerate(self._fragment.outputs)}
        for indices, rows in self._unique.items():
            if indices in by_name:
                where = [by_name[indices], by_name[rows]]
                values[where[0]], values[where[1]] = added_rows(*(values[number] for number in where))
        for way, tensor, value in zip(self._ways, self._fragment.outputs, values, strict=True):
            joined = way in (Reduction.JOIN, Reduction.INDICES)
            value.set_shape([None, *tensor.shape[1:]] if joined else tensor.shape)
        return values


def looped(condition: Callable[..., Tensor], body: Callable[..., Any], start: Sequence[Any]) -> Any:
    """Returns the variables of a loop that runs one iteration after the other; their shapes may change."""
    any_shape = tf.nest.map_structure(lambda _: tf.TensorShape(None), list(start))
    return tf.while_loop(condition, body, start, shape_invariants=any_shape, parallel_iterations=1)


def _key(tensor: Tensor) -> str:
    """Returns the name of the values of all micro-batches."""
    return f"{tensor.name} of each micro-batch"


def _array(dtype: tf.DType, count: Tensor) -> Any:
    return tf.TensorArray(dtype, count, infer_shape=False, clear_after_read=False)


def _start(way: Reduction, dtype: tf.DType, count: Tensor) -> Any:
    if way in (Reduction.JOIN, Reduction.INDICES):
        return _array(dtype, count)
    if dtype == tf.variant:  # e.g., the outputs of a loop so far
        return tf.raw_ops.EmptyTensorList(element_shape=-1, max_num_elements=0, element_dtype=tf.float32)
    return tf.zeros([], dtype)


def _added(way: Reduction, state: Any, value: Tensor, index: Tensor, share: Tensor | None) -> Any:
    if share is not None:
        value *= tf.cast(share, value.dtype)
    if way in _ADDED:
        with tf.control_dependencies(
            [state]
        ):  # else TensorFlow adds up a chain of sums in an order that differs from run to run
            return state + tf.ensure_shape(value, value.shape)
    return value if way is Reduction.LAST else state.write(tf.cast(index, tf.int32), value)


def _ended(way: Reduction, state: Any, count: Tensor | None) -> Tensor:
    if way is Reduction.LAST:
        return state
    value = state if way in _ADDED else state.concat()
    return value if count is None else value / tf.cast(count, value.dtype)


def added_rows(indices: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Adds up the rows of a sparse gradient that have the same index, in the order in which the indices come first."""
    unique, places = tf.unique(indices)
    return unique, tf.math.unsorted_segment_sum(values, places, tf.size(unique))
