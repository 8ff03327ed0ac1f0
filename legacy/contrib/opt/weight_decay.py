"""Optimizers with decoupled weight decay (Loshchilov and Hutter, 2019): the variable decays before the gradient's step."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

import tensorflow.compat.v1 as tf


class DecoupledWeightDecayExtension:
    """Adds weight decay to an optimizer, which stands behind it among a class's bases.

    A step first takes ``weight_decay * variable`` from the variable (of a sparse gradient: from the rows that have one), then
    does what the optimizer does. The decay is not multiplied by the learning rate.

    Args:
        weight_decay: a number, a tensor, or a function of no arguments that gives one.
    """

    _use_locking: bool
    _weight_decay_tensor: tf.Tensor
    _decay_var_list: Collection[Any] | None = None

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        super().__init__(**kwargs)

    def minimize(self, *args: Any, decay_var_list: Collection[Any] | None = None, **kwargs: Any) -> tf.Operation:
        """As ``tf.train.Optimizer.minimize``.

        Args:
            decay_var_list: without effect, as in TensorFlow 1.15, where every variable decays: ``apply_gradients`` obeys it.
        """
        if decay_var_list:
            tf.logging.warning(
                "minimize() ignores decay_var_list, as it did in TensorFlow 1.15: every variable decays. "
                "Call compute_gradients() and apply_gradients(decay_var_list=...) to let only some decay."
            )
        optimizer: Any = super()
        return optimizer.minimize(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Collection[Any] | None = None,
    ) -> tf.Operation:
        """As ``tf.train.Optimizer.apply_gradients``.

        Args:
            decay_var_list: the variables that decay; all of them unless given.
        """
        self._decay_var_list = decay_var_list
        optimizer: Any = super()
        return optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _prepare(self) -> None:
        decay = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        self._weight_decay_tensor = tf.convert_to_tensor(decay, name="weight_decay")
        optimizer: Any = super()
        optimizer._prepare()

    def _decays(self, var: Any) -> bool:
        return not self._decay_var_list or any(var is other for other in self._decay_var_list)

    def _decayed(self, var: Any, grad: Any) -> Any:
        """A context for the step itself. The gradient comes first: TensorFlow 1.15 left open whether it saw the decay."""
        if not self._decays(var):
            return contextlib.nullcontext()
        decay = tf.cast(self._weight_decay_tensor, var.dtype.base_dtype)
        with tf.control_dependencies([grad.values if isinstance(grad, tf.IndexedSlices) else grad]):
            if isinstance(grad, tf.IndexedSlices):
                update = tf.scatter_sub(var, grad.indices, decay * tf.gather(var, grad.indices), self._use_locking)
            else:
                update = var.assign_sub(decay * var, self._use_locking)
        return tf.control_dependencies([update])

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        optimizer: Any = super()
        with self._decayed(var, grad):
            return optimizer._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        optimizer: Any = super()
        with self._decayed(var, grad):
            return optimizer._resource_apply_dense(grad, var)

    def _apply_sparse(self, grad: tf.IndexedSlices, var: Any) -> tf.Operation:
        optimizer: Any = super()
        with self._decayed(var, grad):
            return optimizer._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: tf.Tensor, var: Any, indices: tf.Tensor) -> tf.Operation:
        optimizer: Any = super()
        with self._decayed(var, tf.IndexedSlices(grad, indices)):
            return optimizer._resource_apply_sparse(grad, var, indices)


def extend_with_decoupled_weight_decay(base_optimizer: type[Any]) -> type[Any]:
    """The class of an optimizer with weight decay.

    Args:
        base_optimizer: a subclass of ``tf.train.Optimizer``.

    Returns:
        A class whose first argument is the weight decay; the others, by name, are the optimizer's own.
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        pass

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
    """Momentum with decoupled weight decay; the slot is ``VARIABLE/MomentumW``.

    Args:
        weight_decay: taken from each variable, as a fraction of it, at every step.
        learning_rate: as of ``tf.train.MomentumOptimizer``, and so the rest.
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


class AdamWOptimizer(DecoupledWeightDecayExtension, tf.train.AdamOptimizer):
    """Adam with decoupled weight decay; the slots are ``VARIABLE/AdamW`` and ``VARIABLE/AdamW_1``.

    Args:
        weight_decay: taken from each variable, as a fraction of it, at every step.
        learning_rate: as of ``tf.train.AdamOptimizer``, and so the rest.
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )
