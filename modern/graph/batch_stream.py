"""The batches of one run in their order, for its steps and for what session hooks run between them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Operation, Tensor, upstream
from estimator_bridge.modern.graph.input_pipeline import Feeds, InputPipeline, InputSession
from estimator_bridge.runtime.batch_digest import batch_digest

_STATE = ("Iterator", "MakeIterator", "OneShotIterator", "Queue")


class BatchStream:
    """The batches of one run.

    A pipeline of TensorFlow's datasets runs outside of a session. If a hook touches it before the first batch, e.g., by initialising
    its iterator, it runs in a session, which the hook and the steps share.

    Args:
        pipeline: Pipeline of the input_fn.
        make_iterator: Function that opens an eager iterator over the batches of a pipeline; called at the first batch.
        audited: True if the iterator's last tensor is the batch's digest.

    Attributes:
        pipeline: Pipeline of the input_fn.
        digest: Digest of the last batch that ``next`` returned; 0 without one.
    """

    def __init__(self, pipeline: InputPipeline, make_iterator: Callable[[InputPipeline], Any], audited: bool = False) -> None:
        self.pipeline = pipeline.in_session() if pipeline.is_fed else pipeline
        self.digest = 0
        self._make_iterator = make_iterator
        self._audited = audited

    @functools.cached_property
    def iterator(self) -> Any:
        """The eager iterator over the batches."""
        return self._make_iterator(self.pipeline)

    @functools.cached_property
    def leaves(self) -> list[Tensor]:
        """The tensors of a batch in the graph of the input_fn."""
        return self.pipeline.leaves

    @functools.cached_property
    def _before(self) -> frozenset[Operation]:
        return frozenset(upstream([leaf.op for leaf in self.leaves]))

    @functools.cached_property
    def _last(self) -> frozenset[Operation]:
        return frozenset(leaf.op for leaf in self.leaves)

    def touches(self, op: Operation) -> bool:
        """Returns True for an operation that holds or changes the state of the input, e.g., an iterator or a queue."""
        if any(word in op.type for word in _STATE):
            return True
        return op in self._before and op.op_def.is_stateful and bool(op.inputs)

    def next(self, feeds: Feeds) -> list[Any]:
        """Returns the next batch in the order of ``leaves``.

        Args:
            feeds: Values of tensors in place of those that the graph would compute.

        Raises:
            tf.errors.OutOfRangeError: The input has ended.
        """
        with context.eager_mode():
            if self.pipeline.session is not None or any(ref.deref().op in self._before - self._last for ref in feeds):
                values = self.session().batch(feeds)
                self.digest = int(batch_digest(list(map(tf.convert_to_tensor, values)))) if self._audited else 0
                return values
            batch = next(self.iterator, None)
            if batch is None:
                raise tf.errors.OutOfRangeError(None, None, "The input has ended.")
            self.digest = int(batch[-1][0]) if self._audited else 0
            return list(batch[: len(self.leaves)])

    def session(self) -> InputSession:
        """Returns the session of the input, in which it runs from now on.

        Raises:
            NotSupportedError: A batch has been read already.
        """
        if self.pipeline.session is None:
            if "iterator" in vars(self):
                raise NotSupportedError(
                    "A session hook uses the input's iterator or queue for the first time after the first batch.",
                    expected="hooks that initialise their iterators in after_create_session",
                    fix="Run iterator.initializer in after_create_session, too, or use --path legacy.",
                )
            self.pipeline = self.pipeline.in_session()
        assert self.pipeline.session is not None
        return self.pipeline.session

    def close(self) -> None:
        """Closes the session of the input, if there is one."""
        if self.pipeline.session is not None:
            self.pipeline.session.close()
