"""Input that runs in a session of its own: queues, several iterators, and whatever a script's hooks initialise or feed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Operation, Tensor, upstream

v1 = tf.compat.v1
Feeds = Mapping[Any, Any]
"""Reference of a tensor (``tensor.ref()``) -> its value."""


class InputSession:
    """A real session with the iterators, queues and tables of an input; it begins with the first call of ``run`` or ``batch``.

    Args:
        leaves: Tensors of a batch.
        initializers: Operations that run before all others.
        iterators: Initialisers of iterators, which run before the first batch unless the script has run or must feed them.
        queue_runners: Queue runners, which start before the first batch.
    """

    def __init__(
        self,
        leaves: Sequence[Tensor],
        initializers: Sequence[Operation] = (),
        iterators: Sequence[Operation] = (),
        queue_runners: Sequence[Any] = (),
    ) -> None:
        self._leaves = list(leaves)
        self._initializers = list(initializers)
        self._iterators = list(iterators)
        self._queue_runners = list(queue_runners)
        self._coordinator = v1.train.Coordinator()
        self._threads: list[Any] | None = None
        self._session: Any = None
        self._done: set[Operation] = set()

    def run(self, tensors: Sequence[Tensor], feeds: Feeds | None = None, operations: Sequence[Operation] = ()) -> list[Any]:
        """Runs a part of the input, e.g., the initialiser of an iterator, and returns the values of ``tensors``."""
        if self._session is None:
            # No `with`: after an exception, a session's exit starts a thread, which never returns while Python exits.
            self._session = v1.Session(graph=self._leaves[0].graph)
            self._session.run(self._initializers)
            self._done.update(self._initializers)
        values: list[Any]
        fed = {ref.deref(): value for ref, value in (feeds or {}).items()}
        values, _ = self._session.run([list(tensors), list(operations)], fed)
        self._done.update(operations)
        return values

    def batch(self, feeds: Feeds | None = None) -> list[Any]:
        """Returns the values of the next batch.

        Raises:
            tf.errors.OutOfRangeError: The input has ended.
            Exception: An error ended a queue early.
        """
        if self._threads is None:
            self.run([], operations=[op for op in self._iterators if op not in self._done and not _is_fed(op)])
            self._threads = [
                thread
                for runner in self._queue_runners
                for thread in runner.create_threads(self._session, coord=self._coordinator, daemon=True, start=True)
            ]
        try:
            return self.run(self._leaves, feeds)
        except tf.errors.OutOfRangeError:
            self._coordinator.raise_requested_exception()
            raise

    def batches(self) -> Iterator[tuple[Any, ...]]:
        """Yields batches until the input ends."""
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                yield tuple(self.batch())

    def close(self) -> None:
        """Closes the session, if there is one."""
        self._coordinator.request_stop()
        if self._session is not None:
            self._session.close()


def _is_fed(op: Operation) -> bool:
    return any(one.type == "Placeholder" for one in upstream([op]))
