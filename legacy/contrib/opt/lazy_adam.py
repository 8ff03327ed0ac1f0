"""Lazy Adam. Slots and non-slot variables have the names of TensorFlow 1's: ``m``, ``v``, ``beta1_power``, ``beta2_power``."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


class LazyAdamOptimizer(tf.train.AdamOptimizer):
    """Adam that leaves the slots of rows without a gradient alone.

    Where ``tf.train.AdamOptimizer`` lets the moments of every row of an embedding decay at every step, this one updates the
    moments of a row, and the row, at the steps that use it. Dense gradients are applied as Adam applies them.
    """

    def _apply_sparse(self, grad: tf.IndexedSlices, var: tf.Variable) -> tf.Operation:
        """Called for reference variables, where ``_resource_apply_sparse`` is called for resource variables."""
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: tf.Tensor, var: tf.Variable, indices: tf.Tensor) -> tf.Operation:
        tensors = (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t, *self._get_beta_accumulators())
        rate, beta1, beta2, epsilon, power1, power2 = (tf.cast(tensor, var.dtype.base_dtype) for tensor in tensors)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        v_rows = beta2 * tf.gather(v, indices) + (1 - beta2) * tf.square(grad)
        step = rate * tf.sqrt(1 - power2) / (1 - power1) * m_rows / (tf.sqrt(v_rows) + epsilon)
        return tf.group(
            tf.scatter_sub(var, indices, step, use_locking=self._use_locking),
            tf.scatter_update(m, indices, m_rows, use_locking=self._use_locking),
            tf.scatter_update(v, indices, v_rows, use_locking=self._use_locking),
        )
