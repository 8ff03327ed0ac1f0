"""Makes ``SyncReplicasOptimizer`` synchronous for Estimators of a cluster, without a change to the script.

TensorFlow's own is not: its hook puts ``replicas_to_aggregate`` tokens into the queue at the start, and each token lets a replica run one step
ahead. All replicas share the queue, so fast ones take the tokens of slow ones, and a chief that starts first trains without the others. Here

- the queue starts with as few tokens as an update needs: ``replicas_to_aggregate`` less the number of replicas, at least 0;
- if each replica has the same share of an update, each has its own token queue, so that all take the same steps;
- no replica takes a step before all replicas have a session, and their steps are counted (``sync_replicas_hook``);
- the chief ends without waiting 120 s for its thread, which waits for gradients that no replica sends any more.

With backup replicas (``replicas_to_aggregate`` is less than the number of replicas) all replicas share the queue, as in TensorFlow: a fast replica
may take a step that a slower one misses, and gradients that come too late are dropped.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.distribution.replicas import Replicas
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.patching import preceded, replaced, wrapped

_NAME = "SyncReplicasOptimizer"
_building: contextvars.ContextVar[Replicas | None] = contextvars.ContextVar("replicas", default=None)


@contextlib.contextmanager
def synchronize_replicas() -> Iterator[None]:
    """While active, a SyncReplicasOptimizer in an Estimator of several replicas is synchronous.

    Raises:
        NotSupportedError: The hooks of such an Estimator would leave it waiting for ever.
        BridgeError: Some replicas did not start within ``RunConfig.session_creation_timeout_secs``.
    """
    from tensorflow.python.training import sync_replicas_optimizer as module
    from tensorflow_estimator.python.estimator import estimator

    optimizer, cls = module.SyncReplicasOptimizer, estimator.Estimator
    with (
        wrapped(cls, _train_model_default=_set_replicas, _train_with_estimator_spec=_add_replica_hook),
        replaced(module, data_flow_ops=_with_own_tokens(module.data_flow_ops)),
        preceded(optimizer, apply_gradients=_remember_optimizer),
        wrapped(optimizer, get_init_tokens_op=_fewest_tokens),
        wrapped(module._SyncReplicasOptimizerHook, after_create_session=_without_thread),
    ):
        yield


def find_replicas() -> Replicas | None:
    """Returns the replicas of the training whose graph was built; None without a SyncReplicasOptimizer and for a single task."""
    replicas = _building.get()
    return None if replicas is None or replicas.optimizer is None else replicas


def _set_replicas(train: Any, estimator: Any, *args: Any, **kwargs: Any) -> Any:
    replicas = Replicas(estimator.config)
    token = _building.set(replicas if len(replicas.tasks) > 1 else None)
    try:
        return train(estimator, *args, **kwargs)
    finally:
        _building.reset(token)


def _add_replica_hook(train: Any, estimator: Any, spec: Any, worker_hooks: Any, *args: Any) -> Any:
    if (replicas := find_replicas()) is not None:
        from tensorflow.python.training.sync_replicas_optimizer import _SyncReplicasOptimizerHook

        from estimator_bridge.legacy.distribution.sync_replicas_hook import ReplicaHook

        is_chief = estimator.config.is_chief
        hooks = (*spec.training_hooks, *(spec.training_chief_hooks if is_chief else ()))
        own = [hook for hook in hooks if isinstance(hook, _SyncReplicasOptimizerHook)]
        _check_hooks(own, is_chief)
        spec = spec._replace(  # TensorFlow's hooks of the chief come before ours, which prepares what they begin with
            training_hooks=(*(hook for hook in spec.training_hooks if hook not in own), *own),
            training_chief_hooks=tuple(hook for hook in spec.training_chief_hooks if hook not in own),
        )
        worker_hooks = [*worker_hooks, ReplicaHook(replicas, estimator.model_dir)]
    return train(estimator, spec, worker_hooks, *args)


def _check_hooks(hooks: list[Any], is_chief: bool) -> None:
    """Refuses hooks that would apply gradients in a worker, or twice: all replicas wait without the chief's one."""
    applying = sum(bool(hook._is_chief) for hook in hooks)
    if applying == is_chief:
        return
    raise NotSupportedError(
        f"{_NAME}: {applying} hooks of this task apply gradients.",
        expected="one such hook in the chief, and none in the workers",
        received=f"make_session_run_hook(is_chief) with {[hook._is_chief for hook in hooks]}, in {'the chief' if is_chief else 'a worker'}",
        fix="Put optimizer.make_session_run_hook(config.is_chief) into EstimatorSpec(training_hooks=[...]).",
    )


def _remember_optimizer(optimizer: Any, *args: Any, **kwargs: Any) -> None:
    if (replicas := _building.get()) is not None:
        replicas.optimizer = optimizer


def _with_own_tokens(ops: Any) -> Any:
    """Returns ``data_flow_ops`` for SyncReplicasOptimizer, with a queue for each replica if all are in step."""

    def fifo_queue(*args: Any, **kwargs: Any) -> Any:
        replicas = _building.get()
        if replicas is None or not replicas.is_in_step:
            return ops.FIFOQueue(*args, **kwargs)
        return _TokenQueues(ops.FIFOQueue, len(replicas.tasks), replicas.own, *args, **kwargs)

    return SimpleNamespace(**vars(ops) | {"FIFOQueue": fifo_queue})


class _TokenQueues:
    """A token queue for each replica, used as one queue by SyncReplicasOptimizer and QueueRunner."""

    def __init__(
        self, make: Any, number: int, own: int, capacity: int, dtype: Any, shapes: Any, name: str, shared_name: str
    ) -> None:
        self.name = name
        self.queues = [make(capacity, dtype, shapes=shapes, shared_name=f"{shared_name}_{i}") for i in range(number)]
        self.own = self.queues[own]

    def dequeue(self) -> Any:
        return self.own.dequeue()

    def enqueue_many(self, values: tuple[Any]) -> Any:
        """Gives each replica the same number of tokens; all tokens are equal."""
        import tensorflow as tf

        share = values[0][: values[0].shape[0] // len(self.queues)]
        return tf.group(*[queue.enqueue_many((share,)) for queue in self.queues])

    def close(self, cancel_pending_enqueues: bool = False) -> Any:
        import tensorflow as tf

        return tf.group(*[queue.close(cancel_pending_enqueues) for queue in self.queues])


def _fewest_tokens(get_init_tokens_op: Any, optimizer: Any, num_tokens: int = -1) -> Any:
    replicas = _building.get()
    if replicas is None:
        return get_init_tokens_op(optimizer, num_tokens)
    number, aggregated, total = len(replicas.tasks), optimizer._replicas_to_aggregate, optimizer._total_num_replicas
    fewest = max(0, aggregated - min(total, number))
    asked = aggregated if num_tokens == -1 else num_tokens
    held = "all replicas take the same steps" if replicas.is_in_step else "gradients that come too late are dropped"
    warn_once(
        f"an update takes {aggregated} gradients of {number} replicas, {held}; tokens at the start: {fewest} instead of {asked}",
        _NAME,
    )
    if total != number:
        warn_once(f"total_num_replicas is {total}, but the cluster has {number}", _NAME)
    return get_init_tokens_op(optimizer, fewest)


def _without_thread(after_create_session: Any, hook: Any, session: Any, coord: Any) -> None:
    after_create_session(hook, session, _Unjoined(coord))


class _Unjoined:
    """A coordinator that waits only for the thread that closes the queues, not for the one that applies gradients."""

    def __init__(self, coord: Any) -> None:
        self._coord = coord

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coord, name)

    def register_thread(self, thread: Any) -> None:
        if thread.name.endswith("close_on_stop"):
            self._coord.register_thread(thread)

    def request_stop(self, error: Any = None) -> None:
        """Requests a stop, unless one was requested: errors after it, when the session is closed, are expected."""
        if not self._coord.should_stop():
            self._coord.request_stop(error)
