"""Optimizer state that is cut between workers, so that each keeps and updates a part of it (ZeRO, stage 1).

Each worker gets the sum of the gradients of its part of a variable, updates this part by the kernels of TensorFlow 1, and sends it to the
others. A checkpoint has the state whole, as without shards.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.graph.fragments import Tensor, refused
from estimator_bridge.modern.graph.optimizers.capture import Update
from estimator_bridge.modern.graph.savers import SavedTensor
from estimator_bridge.modern.parallel.micro_batches.accumulation import AccumulatingTransplant
from estimator_bridge.modern.parallel.norms import check_elementwise
from estimator_bridge.modern.step.checkpoints import grouped, merged
from estimator_bridge.modern.step.packs import packs
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.runtime.collectives import exchanged

logging = tf.compat.v1.logging
_PACK = 16 * 2**20
"""Bytes of the variables whose gradients travel together."""
_CHANGES_ALL_ROWS = ("Adam",)
"""Optimizers that change rows of a variable whose gradient has only other rows."""


@dataclasses.dataclass(frozen=True)
class Shard:
    """Part of a variable that one worker updates: rows of one with sparse gradients, else elements.

    Attributes:
        whole: The variable.
        weight: The worker's part, up to date only during an update.
        start: First row or element of the part.
        length: Number of them in each part but the last, which may have fewer.
    """

    whole: Any
    weight: Any
    start: int
    length: int

    @classmethod
    def of(cls, whole: Any, workers: int, worker: int, by_rows: bool) -> Shard | None:
        """Cuts a variable; returns None if ``part_length`` does."""
        length = part_length(whole.shape, workers, by_rows)
        if length is None:
            return None
        shape = whole.shape if by_rows else tf.TensorShape([whole.shape.num_elements()])
        number = min(length, shape[0] - worker * length)
        with tf.device(whole.values[0].device):
            weight = ResourceVariable(tf.zeros([number, *shape[1:]], whole.dtype), trainable=False)
        return cls(whole, weight, worker * length, length)

    @property
    def local(self) -> Any:
        """This worker's copy of the variable."""
        return self.whole.values[0]

    def cut(self, value: Any) -> Tensor:
        """Returns the worker's part of a value of the variable's shape."""
        part = tf.reshape(value, [-1, *self.weight.shape[1:]])[self.start : self.start + self.weight.shape[0]]
        return tf.raw_ops.DeepCopy(x=part)  # else a variable with this part keeps the whole value in memory

    def padded(self, value: Tensor, workers: int) -> Tensor:
        """Returns a whole value, or the worker's part for one worker, with zeros behind it: a row for each worker."""
        flat, length = tf.reshape(value, [-1]), self.length * (self.weight.shape[1:].num_elements() or 1)
        return tf.reshape(tf.pad(flat, [[0, workers * length - flat.shape[0]]]), [workers, length])

    def own(self, row: Tensor) -> Tensor:
        """Returns the worker's part without the zeros behind it."""
        return tf.reshape(row[: self.weight.shape.num_elements()], self.weight.shape)

    def joined(self, rows: Tensor) -> Tensor:
        """Returns the whole value, given the padded parts of all workers."""
        return tf.reshape(tf.reshape(rows, [-1])[: self.whole.shape.num_elements()], self.whole.shape)


def part_length(shape: tf.TensorShape, workers: int, by_rows: bool) -> int | None:
    """Returns the rows or elements of each part of a variable but the last.

    Args:
        shape: Shape of the variable.
        workers: Number of parts.
        by_rows: True to cut rows, False to cut elements.

    Returns:
        The number; None if there is no row or element for some worker, or if the size of the variable may change.

    Example:
        >>> part_length(tf.TensorShape([5, 2]), 2, by_rows=True), part_length(tf.TensorShape([1, 2]), 3, by_rows=False)
        (3, None)
    """
    if not shape.is_fully_defined():
        return None
    total = int(shape[0] if by_rows else shape.num_elements())
    length = -(-total // workers)
    return length if length * (workers - 1) < total else None


class ShardedSlot:
    """A worker's part of a slot, in place of a variable of the graph.

    Args:
        shard: Part of the slot's variable.
        dtype: Type of the slot.

    Attributes:
        variable: The part.
        values: Copies that workers have in common: none.
    """

    values = ()

    def __init__(self, shard: Shard, dtype: tf.DType) -> None:
        self.shard = shard
        with tf.device(shard.weight.device):
            self.variable = ResourceVariable(tf.zeros(shard.weight.shape, dtype), trainable=False)

    def assign(self, value: Any) -> None:
        """Assigns the worker's part of a whole value."""
        self.variable.assign(self.shard.cut(value))

    @property
    def handle(self) -> NoReturn:
        """Raises NotSupportedError, for no operation of the script can use a part of a slot."""
        self.read_value()

    def read_value(self) -> NoReturn:
        """Raises NotSupportedError, see ``handle``."""
        raise NotSupportedError(
            f"A tensor that is logged or summarised reads a slot of {self.shard.whole.name!r}, of which each worker has a part.",
            expected="slots that only the optimizer uses",
            fix='Leave out state = "sharded", or what reads the slot.',
        )

    numpy = read_value


class ShardedState(Transplant):
    """A transplant whose workers each keep and update a part of the optimizers' state.

    Args:
        args: Arguments of ``Transplant``.
        gradients: Type in which gradients travel between workers, which makes the results approximate; None for their own.
        kwargs: Arguments of ``Transplant``.

    Raises:
        BridgeError: There is one worker.
        NotSupportedError: A worker has several replicas, or no optimizer keeps state.
    """

    _may_combine = False

    def __init__(self, *args: Any, gradients: tf.DType | None = None, **kwargs: Any) -> None:
        self._distribution = Distribution(tf.distribute.get_strategy())
        self._gradients = gradients
        self._shards: dict[str, Shard] = {}  # of variables, by their names in the graph
        self._sharded: dict[str, ShardedSlot] = {}
        _check(self._distribution)
        super().__init__(*args, **kwargs)
        own = sum(slot.variable.shape.num_elements() * slot.variable.dtype.size for slot in self._sharded.values())
        if gradients is not None:
            logging.warn("Workers add up their gradients in %s, so the results are approximate.", gradients.name)
        logging.info("This worker keeps %d bytes of the state of %d variables.", own, len(self._shards))

    def _check_replicas(self, variables: Sequence[Any], written: frozenset[str]) -> None:
        check_elementwise(self.model, self._plan)
        super()._check_replicas(variables, written)
        slots = (slot for update in self._plan.updates for slot in _cut_slots(update))
        workers = self._distribution.workers
        if not any(part_length(variable.shape, workers, by_rows) for variable, by_rows, *_ in slots):
            raise refused(
                self._plan.updates[0].op if self._plan.updates else self.model.spec.loss.op,
                "No optimizer of the script keeps state that could be cut between workers.",
                expected="an optimizer with slots, and variables with a row for each worker",
                fix='Leave out state = "sharded".',
            )

    def _make_state(self, optimizer: Any, updates: Sequence[Update]) -> None:
        for update in updates:
            for variable, by_rows, name, template in _cut_slots(update):
                if shard := self._shard(variable, by_rows):
                    slot = self._sharded[template.op.name] = ShardedSlot(shard, template.dtype.base_dtype)
                    own = optimizer._slots.setdefault(shard.weight._unique_id, {})
                    own[update.slot_names[name]] = slot.variable
        whole = [variable for update in updates for _, variable in update.pairs if variable.op.name not in self._shards]
        optimizer._create_all_weights([self.store[variable] for variable in whole])

    def _shard(self, variable: Any, by_rows: bool) -> Shard | None:
        name = variable.op.name
        if name not in self._shards:
            shard = Shard.of(self.store[variable], self._distribution.workers, self._distribution.worker, by_rows)
            self._shards |= {} if shard is None else {name: shard}
        return self._shards.get(name)

    def _slot(self, optimizer: Any, variable: Any, name: str) -> Any:
        shard = self._shards.get(variable.op.name)
        if shard is None:
            return super()._slot(optimizer, variable, name)
        variable = optimizer._slots[shard.weight._unique_id][name]
        return next(slot for slot in self._sharded.values() if slot.variable is variable)

    def _update(self, optimizer: Any, pairs: Sequence[tuple[Any, Any]]) -> None:
        cut = [(gradient, self._shards[variable.op.name]) for gradient, variable in pairs if variable.op.name in self._shards]
        state = optimizer._prepare([shard.weight for _, shard in cut])
        for dtype in dict.fromkeys(shard.weight.dtype for _, shard in cut):
            for pack in packs([pair for pair in cut if pair[1].weight.dtype == dtype], _size, _PACK):
                self._update_cut(optimizer, pack, state)
        rest = [(gradient, variable) for gradient, variable in pairs if variable.op.name not in self._shards]
        if rest:
            super()._update(optimizer, rest)
        else:  # counts the update
            count = functools.partial(optimizer._distributed_apply, grads_and_vars=[], apply_state={}, name=None)
            tf.distribute.get_replica_context().merge_call(count)

    def _update_cut(self, optimizer: Any, pairs: Sequence[tuple[Any, Shard]], state: Any) -> None:
        """Updates variables of one type, and gives all workers the updated parts of all others."""
        sparse = [(gradient, shard) for gradient, shard in pairs if isinstance(gradient, tf.IndexedSlices)]
        dense = [(gradient, shard) for gradient, shard in pairs if not isinstance(gradient, tf.IndexedSlices)]
        changed = [shard for _, shard in dense]
        for shard, gradient in zip(changed, self._summed(dense), strict=True):
            shard.weight.assign(shard.cut(shard.local))
            optimizer._resource_apply_dense(gradient, shard.weight, apply_state=state)
        for gradient, shard in sparse:
            changed += self._update_rows(optimizer, gradient, shard, state)
        if not changed:
            return
        rows = [shard.padded(shard.weight.read_value(), 1) for shard in changed]
        gathered = tf.distribute.get_replica_context().all_gather(tf.concat(rows, axis=1), axis=0)
        for shard, parts in zip(changed, tf.split(gathered, [row.shape[1] for row in rows], axis=1), strict=True):
            shard.local.assign(shard.joined(parts))

    def _summed(self, pairs: Sequence[tuple[Tensor, Shard]]) -> Iterator[Tensor]:
        """Yields the worker's parts of the gradients' sums over the workers."""
        if not pairs:
            return
        parts = [shard.padded(gradient, self._distribution.workers) for gradient, shard in pairs]
        sent = tf.cast(tf.concat(parts, axis=1), self._gradients or parts[0].dtype)
        summed = tf.reduce_sum(tf.cast(exchanged(self._distribution.strategy, sent), parts[0].dtype), axis=0)
        for (_, shard), own in zip(pairs, tf.split(summed, [part.shape[1] for part in parts]), strict=True):
            yield shard.own(own)

    def _update_rows(self, optimizer: Any, gradient: tf.IndexedSlices, shard: Shard, state: Any) -> list[Shard]:
        """Updates the worker's rows by a sparse gradient. Returns the shard if other rows have changed, too."""
        context = tf.distribute.get_replica_context()
        whole = context.all_reduce(tf.distribute.ReduceOp.SUM, gradient)
        is_own = (whole.indices >= shard.start) & (whole.indices < shard.start + shard.weight.shape[0])
        values, indices = tf.boolean_mask(whole.values, is_own), tf.boolean_mask(whole.indices, is_own)
        own, _ = tf.unique(indices)
        changes_all = type(optimizer).__name__ in _CHANGES_ALL_ROWS
        if changes_all:
            shard.weight.assign(shard.cut(shard.local))
        else:
            shard.weight.scatter_update(tf.IndexedSlices(tf.gather(shard.local, own), own - shard.start))
        optimizer._resource_apply_sparse_duplicate_indices(values, shard.weight, indices - shard.start, apply_state=state)
        if not changes_all:
            new = tf.IndexedSlices(tf.gather(shard.weight, own - shard.start), own, gradient.dense_shape)
            shard.local.scatter_update(context.all_reduce(tf.distribute.ReduceOp.SUM, new))
        return [shard] if changes_all else []

    def follow(self) -> None:
        """Waits for the chief, and sends it this worker's state as often as it saves."""
        while self._distribution.gather(tf.constant([0], tf.int64)).numpy().any():
            for _ in self._gathered():
                pass

    def save(self, saved: Sequence[SavedTensor], prefix: str) -> None:
        """Writes a checkpoint with the whole state, which other workers send in parts; they call ``follow``."""
        is_interrupted = self.interrupt is not None
        if self.interrupt:
            self.interrupt()
        self._distribution.gather(tf.constant([1], tf.int64))
        groups = grouped([one for name in self._sharded for one in saved if one.variable == name])
        with merged(prefix, len(groups) + 1) as parts:
            super().save([one for one in saved if one.variable not in self._sharded], parts[0])
            values, name, value = self._gathered(), "", None
            for group, part in zip(groups, parts[1:], strict=True):
                held: list[tuple[SavedTensor, Tensor]] = []
                for one in group:
                    while name != one.variable:  # a Saver may leave out slots, or save one under two names
                        name, value = next(values)
                    held.append((one, value))
                _write(held, part)
            for _ in values:  # the other workers send all of them
                pass
        if is_interrupted:
            self._distribution.gather(tf.constant([0], tf.int64))

    def _gathered(self) -> Iterator[tuple[str, Tensor]]:
        """Yields the name and the whole value of each slot; all workers must take all of them."""
        for name, gather in self._gathers.items():
            yield name, gather()

    @functools.cached_property
    def _gathers(self) -> dict[str, Any]:
        """Functions that return the whole values of the slots, by the slots' names."""
        return {
            name: tf.function(functools.partial(self._whole, slot), autograph=False) for name, slot in self._sharded.items()
        }

    def _whole(self, slot: ShardedSlot) -> Tensor:
        def gather() -> Tensor:
            own = slot.shard.padded(slot.variable.read_value(), 1)
            return slot.shard.joined(tf.distribute.get_replica_context().all_gather(own, axis=0))

        strategy = self._distribution.strategy
        return strategy.experimental_local_results(strategy.run(gather))[0]


class ShardedAccumulation(ShardedState, AccumulatingTransplant):
    """``ShardedState`` in micro-batches."""


def _cut_slots(update: Update) -> Iterator[tuple[Any, bool, str, Any]]:
    """Yields each slot of a variable: the variable, True if it is cut by rows, the slot's name and the slot."""
    gradients = {variable.op.name: gradient for gradient, variable in update.pairs}
    for variable, name, slot in update.slots():
        if variable is not None:
            yield variable, isinstance(gradients[variable.op.name], tf.IndexedSlices), name, slot


def _size(pair: tuple[Any, Shard]) -> int:
    weight = pair[1].whole
    return int(weight.shape.num_elements()) * int(weight.dtype.size)


def _write(held: Sequence[tuple[SavedTensor, Tensor]], prefix: str) -> None:
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=[one.name for one, _ in held],
        shape_and_slices=[one.slice_spec for one, _ in held],
        tensors=[tf.cast(value, one.dtype) for one, value in held],
    )


def _check(distribution: Distribution) -> None:
    if distribution.workers == 1:
        raise BridgeError(
            "One worker keeps the whole state, so there is nothing to cut.",
            expected="several workers: estimator-bridge launch --worker 1 --path modern",
            fix='Leave out state = "sharded", or start more workers.',
        )
    if distribution.replicas > distribution.workers:
        raise NotSupportedError(
            "The state cannot be cut between workers that have several replicas each.",
            expected="one replica in each worker; on machines with several GPUs that has not been tried",
            received=f"{distribution.replicas // distribution.workers} replicas in each",
            fix='Show each worker one GPU by CUDA_VISIBLE_DEVICES, or leave out state = "sharded".',
        )
