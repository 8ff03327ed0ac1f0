"""``tf.compat.v1.tpu.CrossShardOptimizer`` outside a TPU.

What was removed: nothing. Every TensorFlow has the class, but its sum of gradients over shards has no kernel for CPU or GPU. With a single
shard the sum is the gradient itself, so it is left out.

Needed by: a model_fn that wraps its optimizer whatever ``use_tpu`` is, run by ``TPUEstimator(use_tpu=False)``.
"""

import functools
from collections.abc import Callable
from typing import Any

from tensorflow.python.tpu import tpu_function, tpu_optimizer


def restore() -> None:
    """Lets a CrossShardOptimizer that is not on a TPU apply its gradients as they are.

    Example:
        >>> restore()
        >>> import tensorflow.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     weight = tf.get_variable("weight", initializer=1.0)
        ...     step = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.5)).minimize(2 * weight)
        ...     session.run(weight.initializer)
        ...     session.run(step)
        ...     float(session.run(weight))
        0.0
    """
    optimizer = tpu_optimizer.CrossShardOptimizer
    if not hasattr(optimizer.apply_gradients, "__wrapped__"):
        optimizer.apply_gradients = _sum_only_on_tpu(optimizer.apply_gradients)


def _sum_only_on_tpu(summing: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(summing)
    def apply_gradients(self: Any, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        on_tpu = tpu_function.get_tpu_context().number_of_shards is not None
        apply = functools.partial(summing, self) if on_tpu else self._opt.apply_gradients
        return apply(grads_and_vars, global_step, name)

    return apply_gradients
