"""Variants of Adam. Slots and non-slot variables have the names of TensorFlow 1's: ``m``, ``v``, ``beta1_power``, ``beta2_power``.

TensorFlow calls one method for reference variables and another for resource variables; here both come down to one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf


class _Hyperparameters(NamedTuple):
    """In the variable's dtype."""

    learning_rate: tf.Tensor
    beta1: tf.Tensor
    beta2: tf.Tensor
    epsilon: tf.Tensor


class _Adam(tf.train.AdamOptimizer):
    """Adam, its sparse updates in one method and its hyperparameters at hand."""

    def _apply_sparse(self, grad: tf.IndexedSlices, var: Any) -> tf.Operation:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _cast(self, var: Any) -> _Hyperparameters:
        tensors = (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return _Hyperparameters(*(tf.cast(tensor, var.dtype.base_dtype) for tensor in tensors))

    def _cast_powers(self, var: Any) -> list[tf.Tensor]:
        return [tf.cast(power, var.dtype.base_dtype) for power in self._get_beta_accumulators()]

    def _corrected_learning_rate(self, var: Any) -> tf.Tensor:
        """The learning rate with both bias corrections."""
        beta1_power, beta2_power = self._cast_powers(var)
        return self._cast(var).learning_rate * tf.sqrt(1 - beta2_power) / (1 - beta1_power)


class LazyAdamOptimizer(_Adam):
    """Adam that leaves the slots of rows without a gradient alone.

    Where ``tf.train.AdamOptimizer`` lets the moments of every row of an embedding decay at every step, this one updates the
    moments of a row, and the row, at the steps that use it. Dense gradients are applied as Adam applies them.
    """

    def _resource_apply_sparse(self, grad: tf.Tensor, var: Any, indices: tf.Tensor) -> tf.Operation:
        _, beta1, beta2, epsilon = self._cast(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        v_rows = beta2 * tf.gather(v, indices) + (1 - beta2) * tf.square(grad)
        step = self._corrected_learning_rate(var) * m_rows / (tf.sqrt(v_rows) + epsilon)
        return tf.group(
            tf.scatter_sub(var, indices, step, use_locking=self._use_locking),
            tf.scatter_update(m, indices, m_rows, use_locking=self._use_locking),
            tf.scatter_update(v, indices, v_rows, use_locking=self._use_locking),
        )


class NadamOptimizer(_Adam):
    """Adam with Nesterov momentum (Dozat, 2015, Incorporating Nesterov momentum into Adam)."""

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        operands = self._dense_operands(grad, var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return tf.raw_ops.ApplyAdam(var=var._ref(), m=m._ref(), v=v._ref(), **operands).op

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        operands = self._dense_operands(grad, var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return tf.raw_ops.ResourceApplyAdam(var=var.handle, m=m.handle, v=v.handle, **operands)

    def _dense_operands(self, grad: tf.Tensor, var: Any) -> dict[str, Any]:
        learning_rate, beta1, beta2, epsilon = self._cast(var)
        beta1_power, beta2_power = self._cast_powers(var)
        return {
            "beta1_power": beta1_power,
            "beta2_power": beta2_power,
            "lr": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
            "grad": grad,
            "use_locking": self._use_locking,
            "use_nesterov": True,
        }

    def _resource_apply_sparse(self, grad: tf.Tensor, var: Any, indices: tf.Tensor) -> tf.Operation:
        _, beta1, beta2, epsilon = self._cast(var)
        m_rows = self._updated_rows(self.get_slot(var, "m"), beta1, indices, (1 - beta1) * grad)
        v_rows = self._updated_rows(self.get_slot(var, "v"), beta2, indices, (1 - beta2) * tf.square(grad))
        m_bar = (1 - beta1) * grad + beta1 * m_rows
        step = self._corrected_learning_rate(var) * m_bar / (tf.sqrt(v_rows) + epsilon)
        return tf.group(tf.scatter_sub(var, indices, step, use_locking=self._use_locking))

    def _updated_rows(self, slot: Any, decay: tf.Tensor, indices: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Rows of a slot after all of it decayed and they were added to."""
        with tf.control_dependencies([slot.assign(slot * decay, use_locking=self._use_locking)]):
            added = tf.scatter_add(slot, indices, rows, use_locking=self._use_locking)
        with tf.control_dependencies([added]):
            return tf.gather(slot, indices)


class AdaMaxOptimizer(_Adam):
    """Adam with the infinity norm (Kingma and Ba, 2015, section 7.1); ``v`` is that norm and there is no ``beta2_power``.

    Args:
        learning_rate: 0.001 unless given.
        beta1: decay of the first moment.
        beta2: decay of the norm.
        epsilon: added to the norm.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power", graph=tf.get_default_graph())

    def _create_slots(self, var_list: list[Any]) -> None:
        first = min(var_list, key=lambda var: var.name)
        self._create_non_slot_variable(initial_value=self._beta1, name="beta1_power", colocate_with=first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        operands = self._dense_operands(grad, var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return tf.raw_ops.ApplyAdaMax(var=var._ref(), m=m._ref(), v=v._ref(), **operands).op

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        operands = self._dense_operands(grad, var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        return tf.raw_ops.ResourceApplyAdaMax(var=var.handle, m=m.handle, v=v.handle, **operands)

    def _dense_operands(self, grad: tf.Tensor, var: Any) -> dict[str, Any]:
        learning_rate, beta1, beta2, epsilon = self._cast(var)
        return {
            "beta1_power": tf.cast(self._get_beta_accumulators(), var.dtype.base_dtype),
            "lr": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
            "grad": grad,
            "use_locking": self._use_locking,
        }

    def _resource_apply_sparse(self, grad: tf.Tensor, var: Any, indices: tf.Tensor) -> tf.Operation:
        learning_rate, beta1, beta2, epsilon = self._cast(var)
        beta1_power = tf.cast(self._get_beta_accumulators(), var.dtype.base_dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        v_rows = tf.maximum(beta2 * tf.gather(v, indices), tf.abs(grad))
        step = learning_rate / (1 - beta1_power) * m_rows / (v_rows + epsilon)
        return tf.group(
            tf.scatter_sub(var, indices, step, use_locking=self._use_locking),
            tf.scatter_update(m, indices, m_rows, use_locking=self._use_locking),
            tf.scatter_update(v, indices, v_rows, use_locking=self._use_locking),
        )

    def _finish(self, update_ops: list[tf.Operation], name_scope: str) -> tf.Operation:
        with tf.control_dependencies(update_ops):
            power = self._get_beta_accumulators()
            with tf.colocate_with(power):
                update = power.assign(power * self._beta1_t, use_locking=self._use_locking)
        return tf.group(*update_ops, update, name=name_scope)
