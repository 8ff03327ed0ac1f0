"""``SyncReplicasOptimizer`` made as synchronous as its name, for Estimators of a cluster; the script stays as it is.

By hand it is not: its hook puts ``replicas_to_aggregate`` tokens into the queue at the start, each of which lets a replica run one step ahead,
and the queue is one for all, so who is fast takes the tokens of who is slow. A chief that starts first trains alone. Here

- the queue starts with no more tokens than an update needs: ``replicas_to_aggregate`` less the number of replicas, and 0 at least;
- where each replica has the same share of an update, each has a token queue of its own, so that all take the same steps;
- nobody takes a step before all replicas have a session, and their steps are counted (``replica_hook``);
- the chief ends without waiting (120 s) for its thread that waits for gradients which nobody sends any more.

With backup replicas (``replicas_to_aggregate`` less than there are replicas) the queue stays one for all, as TensorFlow has it: who is fast may
take a step that a slower one misses, and gradients that come too late are dropped.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.distribution.replicas import Replicas
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.patching import replaced

_NAME = "SyncReplicasOptimizer"


_building: contextvars.ContextVar[Replicas | None] = contextvars.ContextVar("replicas", default=None)


@contextlib.contextmanager
def synchronize_replicas() -> Iterator[None]:
    """While active, a SyncReplicasOptimizer in an Estimator of several replicas is synchronous.

    Raises:
        NotSupportedError: when such an Estimator trains, and its hooks would leave it waiting for ever.
        BridgeError: when not all replicas have come within ``RunConfig.session_creation_timeout_secs``.
    """
    from tensorflow.python.training import sync_replicas_optimizer as module
    from tensorflow_estimator.python.estimator import estimator

    optimizer, hook, cls = module.SyncReplicasOptimizer, module._SyncReplicasOptimizerHook, estimator.Estimator
    with (
        replaced(
            cls,
            _train_model_default=_knowing_replicas(cls._train_model_default),
            _train_with_estimator_spec=_counting(cls._train_with_estimator_spec, hook),
        ),
        replaced(module, data_flow_ops=_with_own_tokens(module.data_flow_ops)),
        replaced(
            optimizer,
            apply_gradients=_remembered(optimizer.apply_gradients),
            get_init_tokens_op=_fewest_tokens(optimizer.get_init_tokens_op),
        ),
        replaced(hook, after_create_session=_unjoined(hook.after_create_session)),
    ):
        yield


def find_replicas() -> Replicas | None:
    """Those of the training whose graph was built; None where it has no SyncReplicasOptimizer, or one task alone."""
    replicas = _building.get()
    return None if replicas is None or replicas.optimizer is None else replicas


def _knowing_replicas(train: Any) -> Any:
    @functools.wraps(train)
    def train_model(self: Any, *args: Any, **kwargs: Any) -> Any:
        replicas = Replicas(self.config)
        token = _building.set(replicas if len(replicas.tasks) > 1 else None)
        try:
            return train(self, *args, **kwargs)
        finally:
            _building.reset(token)

    return train_model


def _counting(train: Any, hook_type: type[Any]) -> Any:
    @functools.wraps(train)
    def train_with_estimator_spec(self: Any, spec: Any, worker_hooks: Any, *args: Any) -> Any:
        if (replicas := find_replicas()) is not None:
            from estimator_bridge.legacy.distribution.sync_replicas_hook import ReplicaHook

            chiefs = spec.training_chief_hooks if self.config.is_chief else ()
            own = [hook for hook in (*spec.training_hooks, *chiefs) if isinstance(hook, hook_type)]
            _check(own, self.config.is_chief)
            spec = spec._replace(  # those of the chief alone come before ours, which has to make ready what these begin with
                training_hooks=(*(hook for hook in spec.training_hooks if hook not in own), *own),
                training_chief_hooks=tuple(hook for hook in spec.training_chief_hooks if hook not in own),
            )
            worker_hooks = [*worker_hooks, ReplicaHook(replicas, self.model_dir)]
        return train(self, spec, worker_hooks, *args)

    return train_with_estimator_spec


def _check(hooks: list[Any], is_chief: bool) -> None:
    """The chief's hook alone applies gradients; without it all replicas wait, and a second one would apply others."""
    applying = sum(bool(hook._is_chief) for hook in hooks)
    if applying == is_chief:
        return
    raise NotSupportedError(
        f"{_NAME}: {applying} hooks of this task apply gradients.",
        expected="one in the chief, and none in the workers",
        received=f"make_session_run_hook(is_chief) with {[hook._is_chief for hook in hooks]}, in {'the chief' if is_chief else 'a worker'}",
        fix="Put optimizer.make_session_run_hook(config.is_chief) into EstimatorSpec(training_hooks=[...]).",
    )


def _remembered(apply: Any) -> Any:
    @functools.wraps(apply)
    def apply_gradients(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (replicas := _building.get()) is not None:
            replicas.optimizer = self
        return apply(self, *args, **kwargs)

    return apply_gradients


def _with_own_tokens(ops: Any) -> Any:
    """What SyncReplicasOptimizer takes from ``data_flow_ops``, with a queue for each replica where all are in step."""

    def fifo_queue(*args: Any, **kwargs: Any) -> Any:
        replicas = _building.get()
        if replicas is None or not replicas.in_step:
            return ops.FIFOQueue(*args, **kwargs)
        return _TokenQueues(ops.FIFOQueue, len(replicas.tasks), replicas.own, *args, **kwargs)

    return SimpleNamespace(
        FIFOQueue=fifo_queue,
        ConditionalAccumulator=ops.ConditionalAccumulator,
        SparseConditionalAccumulator=ops.SparseConditionalAccumulator,
    )


class _TokenQueues:
    """One queue a replica, for SyncReplicasOptimizer and QueueRunner, which expect one."""

    def __init__(
        self, make: Any, number: int, own: int, capacity: int, dtype: Any, shapes: Any, name: str, shared_name: str
    ) -> None:
        self.name = name
        self.queues = [make(capacity, dtype, shapes=shapes, shared_name=f"{shared_name}_{i}") for i in range(number)]
        self.own = self.queues[own]

    def dequeue(self) -> Any:
        return self.own.dequeue()

    def enqueue_many(self, values: tuple[Any]) -> Any:
        """Deals them out: they are all the same, and as many for each replica."""
        import tensorflow as tf

        share = values[0][: values[0].shape[0] // len(self.queues)]
        return tf.group(*[queue.enqueue_many((share,)) for queue in self.queues])

    def close(self, cancel_pending_enqueues: bool = False) -> Any:
        import tensorflow as tf

        return tf.group(*[queue.close(cancel_pending_enqueues) for queue in self.queues])


def _fewest_tokens(get: Any) -> Any:
    @functools.wraps(get)
    def get_init_tokens_op(self: Any, num_tokens: int = -1) -> Any:
        replicas = _building.get()
        if replicas is None:
            return get(self, num_tokens)
        number, aggregated, total = len(replicas.tasks), self._replicas_to_aggregate, self._total_num_replicas
        fewest = max(0, aggregated - min(total, number))
        asked = aggregated if num_tokens == -1 else num_tokens
        held = "all replicas take the same steps" if replicas.in_step else "gradients that come too late are dropped"
        warn_once(
            f"{aggregated} gradients of {number} replicas make an update, {held}; tokens at the start: {fewest}, not {asked}",
            _NAME,
        )
        if total != number:
            warn_once(f"total_num_replicas is {total}, but the cluster has {number}", _NAME)
        return get(self, fewest)

    return get_init_tokens_op


def _unjoined(after_create_session: Any) -> Any:
    @functools.wraps(after_create_session)
    def created(self: Any, session: Any, coord: Any) -> None:
        after_create_session(self, session, _Unjoined(coord))

    return created


class _Unjoined:
    """A coordinator that does not wait for the thread that applies gradients, only for the one that closes the queues."""

    def __init__(self, coord: Any) -> None:
        self._coord = coord

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coord, name)

    def register_thread(self, thread: Any) -> None:
        if thread.name.endswith("close_on_stop"):
            self._coord.register_thread(thread)

    def request_stop(self, error: Any = None) -> None:
        """What happens after the stop, when the session is gone, is no error."""
        if not self._coord.should_stop():
            self._coord.request_stop(error)
