"""The workers of a ClusterCoordinator; only this module reads what TensorFlow keeps private about them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.coordinator.remote_value import RemoteValueStatus

_POLL_SECONDS = 0.001


class Workers:
    """Runs functions on workers, of which any may be lost at any time.

    Args:
        coordinator: ``ClusterCoordinator``; the process of each worker has a ``Feed``.
        prepare: ``tf.function`` that each worker runs first, also when it comes back; None without one.

    Attributes:
        indices: Task index of each worker.
    """

    def __init__(self, coordinator: Any, prepare: Any = None) -> None:
        self._coordinator = coordinator
        self._queue = coordinator._cluster.closure_queue
        self._workers = coordinator._cluster.workers
        self._prepared = [coordinator._create_per_worker_resources(prepare)] if prepare else []
        self.indices = [worker.worker_index for worker in self._workers]

    def schedule(self, function: Callable[..., Any], limits: Any) -> list[Any]:
        """Schedules one call for each worker; the call of a dead worker is one more for the others.

        Returns:
            One ``RemoteValue`` for each call.
        """
        return [self._coordinator.schedule(function, (limits,)) for _ in self._workers]

    def run_on(self, worker: int, function: Callable[..., Any], limits: Any) -> Any:
        """Calls a function on one worker at once and waits for it.

        Args:
            worker: Place of the worker among ``indices``.
            function: Function of one tensor.
            limits: Tensor.

        Returns:
            The result's values as arrays, or None if the worker is lost.
        """
        with contextlib.suppress(tf.errors.OpError), tf.device(self._workers[worker].device_name):
            return fetch(function(limits)) if self._is_ready(worker) else None
        return None

    def _is_ready(self, worker: int) -> bool:
        """Waits until a worker has run ``prepare``. Returns False if it is lost."""
        while not self._workers[worker]._is_dead_with_error:
            if all(value._values[worker]._status is RemoteValueStatus.READY for value in self._prepared):
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def wait(self) -> None:
        """Waits until no call runs; ``join`` of the coordinator would wait for dead workers, and logs.

        Takes back calls that only dead workers could run. A worker that came back would make them by an old limit, with tickets of
        a later pool.
        """
        while not self._coordinator.done():
            if not self._queue.inflight_closure_count and all(worker._is_dead_with_error for worker in self._workers):
                while self._queue.get(timeout=0) is not None:
                    self._queue.mark_finished()
            time.sleep(_POLL_SECONDS)


def finished(calls: Sequence[Any]) -> list[Any]:
    """Returns the results of the calls that ended well.

    A result stays with its worker until it is fetched, and is lost with it.
    """
    results = []
    for call in calls:
        if call._status is RemoteValueStatus.READY:
            with contextlib.suppress(tf.errors.OpError):
                results.append(call.fetch())
    return results


def fetch(values: Any) -> Any:
    """Returns tensors as arrays, in the same structure."""
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), values)
