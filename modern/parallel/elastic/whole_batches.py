"""Training steps of several batches of the input_fn, computed one after the other, whose update is that of as many workers in step.

The graph is that of one of those workers. So each batch's gradient is scaled as there, and the gradients of all batches are added up,
in a process and then between processes. Which process computes which batch makes no difference but rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.optimizers.capture import Update, sums_loss
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.micro_batches.accumulation import AccumulatingTransplant
from estimator_bridge.modern.parallel.micro_batches.loop import MicroBatches, WholeBatches, rows_of
from estimator_bridge.modern.parallel.micro_batches.reductions import Reduction, of_gradients
from estimator_bridge.modern.parallel.sharded_state import ShardedState
from estimator_bridge.modern.step.transplant import Parts


class ElasticTransplant(AccumulatingTransplant):
    """A transplant that takes several batches for a step; all workers together always take the same number.

    Args:
        args: Arguments of ``AccumulatingTransplant``; its ``number`` is that of this worker's batches.
        total: Number of batches of all workers, for which the graph was built.
        by_rows: True if a batch counts by its rows, False if each counts the same.
        kwargs: Arguments of ``AccumulatingTransplant``.
    """

    _sums = True
    _needs_independent_rows = False

    def __init__(self, *args: object, total: int, by_rows: bool = False, **kwargs: object) -> None:
        self._total = total
        self._by_rows = by_rows
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    @property
    def parts(self) -> Parts | None:
        """Batches of which a step sees each by itself."""
        return Parts("the last batch", "each batch of a step has its own value", "Train without [elastic] and shares")

    @property
    def replicas(self) -> int:
        """Number of batches whose gradients a step adds up."""
        return self._total

    def _reduced(self, made: Plan) -> Mapping[str, Reduction] | None:
        """Returns the gradients as optimizers get them: what the script does to gradients it does to those of each batch.

        An optimizer of the script's own takes the mean of all batches, and so does what comes before it.
        """
        if self._is_combined:
            return None
        loss = self.model.spec.loss
        return of_gradients(gradient for update in made.updates for gradient, _ in update.pairs) | {loss.name: Reduction.MEAN}

    @property
    def _computes_parts(self) -> bool:
        return True

    def _prepare_losses(self) -> None:
        """Accepts every loss, since each batch has its own, as in each of several workers."""

    def _micro_batches(self, batches: Sequence[Sequence[Tensor]]) -> MicroBatches:
        return WholeBatches(batches, self._shares_of(batches))

    def _shares_of(self, batches: Sequence[Sequence[Tensor]]) -> Tensor | None:
        """Returns the rows of each batch, divided by the mean of all; None if batches of any size count the same."""
        if not self._by_rows or sums_loss(self.model.graph):
            return None
        flat = [tf.nest.flatten(self.model.pipeline.with_leaves(list(batch))) for batch in batches]
        first = next((place for place, one in enumerate(flat[0]) if tf.is_tensor(one) and one.shape.rank != 0), None)
        if first is None or flat[0][first].shape[0] is not None:  # all batches have this number of rows
            return None
        rows = tf.cast(tf.stack([rows_of(batch[first]) for batch in flat]), tf.float32)
        total = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.reduce_sum(rows))
        return rows * self._total / total

    def _apply(self, update: Update, optimizer: Any, known: dict[str, Tensor], weight: Tensor | None) -> None:
        """Applies gradients of all batches; what depends on no batch was computed once, but counts for each."""
        own = dict(known)
        for gradient, _ in () if self._is_combined else update.pairs:
            sparse = isinstance(gradient, tf.IndexedSlices)
            values = gradient.values if sparse else gradient
            are_joined = [tensor.op in self._division.each for tensor in ((values, gradient.indices) if sparse else (values,))]
            if sparse and any(are_joined):
                for tensor, is_joined in zip((values, gradient.indices), are_joined, strict=True):
                    own[tensor.name] = known[tensor.name] if is_joined else tf.concat([known[tensor.name]] * self._number, 0)
            elif not any(are_joined):
                own[values.name] = known[values.name] * tf.cast(self._number, values.dtype)
        super()._apply(update, optimizer, own, weight)

    def _combined(self, loss: Tensor, weight: Tensor | None) -> Tensor:
        if self._is_combined:
            return loss
        context = tf.distribute.get_replica_context()
        total = tf.cast(self._number, loss.dtype) * loss
        if context.num_replicas_in_sync > 1:
            total = context.all_reduce(tf.distribute.ReduceOp.SUM, total)
        is_mean = getattr(self.model.graph, "_is_loss_scaled_by_optimizer", False)
        return total / self._total if is_mean else total


class ShardedElastic(ShardedState, ElasticTransplant):
    """``ShardedState`` of whole batches."""
