"""SyncReplicasOptimizer without its queues: trainers whose gradients are averaged take the same step at the same time anyway.

TensorFlow 1 collects gradients in accumulators on the parameter servers, and lets workers go on by tokens from a queue. Here the call is
recorded, and the optimizer inside applies the gradients of the graph. Who averages them is the training loop.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Operation, refused
from estimator_bridge.runtime.patching import wrapped

v1 = tf.compat.v1


class SynchronousUpdate(NamedTuple):
    """A SyncReplicasOptimizer and the operation by which it applied gradients."""

    optimizer: Any
    op: Operation


@contextlib.contextmanager
def recorded_synchronous() -> Iterator[list[SynchronousUpdate]]:
    """Yields a list to which each call of a SyncReplicasOptimizer's ``apply_gradients`` is added while this is active.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default(), recorded_synchronous() as found:
        ...     step, weight = v1.train.get_or_create_global_step(), v1.get_variable("weight", initializer=1.0)
        ...     optimizer = v1.train.SyncReplicasOptimizer(v1.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2)
        ...     _ = optimizer.apply_gradients([(tf.constant(1.0), weight)], step)
        >>> [one.optimizer._replicas_to_aggregate for one in found]
        [2]
    """
    found: list[SynchronousUpdate] = []

    def apply_gradients(_: Any, self: Any, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._gradients_applied = True
        with v1.name_scope(""):  # where TensorFlow makes the other optimizer's variables
            applied = self._opt.apply_gradients(pairs, global_step)
            found.append(SynchronousUpdate(self, applied))
            if self._variable_averages is None:
                return applied
            with tf.control_dependencies([applied]):
                return self._variable_averages.apply(self._variables_to_average)

    with wrapped(
        v1.train.SyncReplicasOptimizer,
        apply_gradients=apply_gradients,
        make_session_run_hook=_no_hook,
        get_chief_queue_runner=_no_queue,
        get_init_tokens_op=_no_tokens,
    ):
        yield found


def check_trainers(found: Sequence[SynchronousUpdate], trainers: int) -> None:
    """Raises NotSupportedError unless each synchronous update takes one gradient of each trainer."""
    for optimizer, op in found:
        aggregated = optimizer._replicas_to_aggregate
        if aggregated != trainers:
            raise refused(
                op,
                f"SyncReplicasOptimizer takes {aggregated} gradients for an update, but {trainers} of the tasks train.",
                expected="on the modern path: replicas_to_aggregate is the number of the chief and the workers",
                received=f"replicas_to_aggregate={aggregated}, total_num_replicas={optimizer._total_num_replicas}",
                fix="Set replicas_to_aggregate to config.num_worker_replicas, or use --path legacy, which has backup replicas.",
            )


def _no_hook(_: Any, optimizer: Any, is_chief: bool, num_tokens: int = -1) -> Any:
    return v1.train.SessionRunHook()


def _no_queue(_: Any, optimizer: Any) -> Any:
    with tf.control_dependencies(None):
        return v1.train.QueueRunner(tf.queue.FIFOQueue(1, tf.int64), [tf.no_op()])


def _no_tokens(_: Any, optimizer: Any, num_tokens: int = -1) -> Any:
    return tf.no_op()
