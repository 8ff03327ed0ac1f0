"""Optimizers that pipelines of TensorFlow 1 took from tf.contrib or brought along, written anew from their published rules.

Each names its slots as the original does, which is what a checkpoint shows of it.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

v1: Any = tf.compat.v1


class AdamW(v1.train.AdamOptimizer):
    """tf.contrib's: what decays is ``weight_decay`` of a weight, whatever the learning rate, of rows only those with a gradient."""

    def __init__(self, weight_decay: float, learning_rate: float) -> None:
        super().__init__(learning_rate, name="AdamW")
        self._weight_decay = weight_decay

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies([grad]):  # not while the gradient is still being computed
            decay = var.assign_sub(self._weight_decay * var)
        with tf.control_dependencies([decay]):
            return super()._resource_apply_dense(grad, var)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        with tf.control_dependencies([grad]):
            decay = var.scatter_sub(tf.IndexedSlices(self._weight_decay * tf.gather(var, indices), indices))
        with tf.control_dependencies([decay]):
            return super()._resource_apply_sparse(grad, var, indices)


class LazyAdam(v1.train.AdamOptimizer):
    """tf.contrib's: rows without a gradient keep their moments and their values."""

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        beta1_power, beta2_power = self._get_beta_accumulators()
        rate = self._lr_t * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = self._beta1_t * tf.gather(m, indices) + (1 - self._beta1_t) * grad
        new_v = self._beta2_t * tf.gather(v, indices) + (1 - self._beta2_t) * grad**2
        step = rate * new_m / (tf.sqrt(new_v) + self._epsilon_t)
        return tf.group(
            m.scatter_update(tf.IndexedSlices(new_m, indices)),
            v.scatter_update(tf.IndexedSlices(new_v, indices)),
            var.scatter_sub(tf.IndexedSlices(step, indices)),
        )


class AdaMax(v1.train.AdamOptimizer):
    """tf.contrib's: the largest gradient in place of the second moment; lazy like LazyAdam; no beta2_power."""

    def __init__(self, learning_rate: float) -> None:
        super().__init__(learning_rate, name="AdaMax")

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power", graph=v1.get_default_graph())

    def _create_slots(self, var_list: Any) -> None:
        self._create_non_slot_variable(initial_value=self._beta1, name="beta1_power", colocate_with=var_list[0])
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m, new_v, step = self._rule(grad, m, v)
        return tf.group(m.assign(new_m), v.assign(new_v), var.assign_sub(step))

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rows = [tf.gather(slot, indices) for slot in (m, v)]
        new_m, new_v, step = self._rule(grad, *rows)
        return tf.group(
            m.scatter_update(tf.IndexedSlices(new_m, indices)),
            v.scatter_update(tf.IndexedSlices(new_v, indices)),
            var.scatter_sub(tf.IndexedSlices(step, indices)),
        )

    def _rule(self, grad: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
        new_m = self._beta1_t * m + (1 - self._beta1_t) * grad
        new_v = tf.maximum(self._beta2_t * v, tf.abs(grad))
        return new_m, new_v, self._lr_t / (1 - self._get_beta_accumulators()) * new_m / (new_v + self._epsilon_t)

    def _finish(self, update_ops: Any, name_scope: str) -> Any:
        power = self._get_beta_accumulators()
        with tf.control_dependencies(update_ops):
            return tf.group(*update_ops, power.assign(power * self._beta1_t), name=name_scope)


class BertAdam(v1.train.Optimizer):
    """The optimizer of BERT's scripts: no bias correction, weight decay inside of the step, sparse gradients made dense."""

    slots = ("adam_m", "adam_v")

    def __init__(self, learning_rate: float, weight_decay: float = 0.0, epsilon: float = 1e-6) -> None:
        super().__init__(False, type(self).__name__)
        self._rate, self._weight_decay, self._epsilon = learning_rate, weight_decay, epsilon

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        updates = [global_step.assign_add(1)]
        for grad, var in grads_and_vars:
            m, v = (
                v1.get_variable(f"{var.op.name}/{slot}", var.shape, trainable=False, initializer=v1.zeros_initializer())
                for slot in self.slots
            )
            dense = tf.convert_to_tensor(grad)
            new_m, new_v = 0.9 * m + 0.1 * dense, 0.999 * v + 0.001 * dense**2
            step = new_m / (tf.sqrt(new_v) + self._epsilon) + self._weight_decay * var
            updates += [m.assign(new_m), v.assign(new_v), var.assign_sub(self._rate * self._ratio(var, step) * step)]
        return tf.group(*updates, name=name)

    def _ratio(self, var: Any, step: Any) -> Any:
        return 1.0


class Lamb(BertAdam):
    """The same with each variable's step scaled to the variable's norm, and slots of other names."""

    slots = ("lamb_m", "lamb_v")

    def _ratio(self, var: Any, step: Any) -> Any:
        sizes = tf.norm(var), tf.norm(step)
        return tf.where((sizes[0] > 0) & (sizes[1] > 0), sizes[0] / sizes[1], 1.0)
