"""Keras optimizers that compute an update as TensorFlow 1 does, to the last bit.

``tf_keras.optimizers.legacy`` follows TF1's rules but not its kernels: another kernel rounds otherwise, a rounding sends some unit
to the other side of a relu's corner sooner or later, and from there two correct trainings drift apart. These subclasses run the
kernels that TF1 runs, so that a difference between the paths always means something. SGD, Ftrl and Adadelta need no subclass:
tf_keras runs the same kernels for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

ops = tf.raw_ops

Tensor = Any
Variable = Any

_BETAS = {"beta1_power": "beta_1", "beta2_power": "beta_2"}


class Momentum(tf_keras.optimizers.legacy.SGD):
    """``accum = momentum * accum + gradient; variable -= learning_rate * accum``.

    ``legacy.SGD`` keeps ``-learning_rate * accum`` instead, which weighs past gradients otherwise once the rate changes.
    """

    def _resource_apply_dense(self, grad: Tensor, var: Variable, apply_state: Any = None) -> Any:
        return ops.ResourceApplyMomentum(grad=grad, **self._arguments(var), use_locking=self._use_locking)

    def _resource_apply_sparse(self, grad: Tensor, var: Variable, indices: Tensor, apply_state: Any = None) -> Any:
        return ops.ResourceSparseApplyMomentum(
            grad=grad, indices=indices, **self._arguments(var), use_locking=self._use_locking
        )

    def _arguments(self, var: Variable) -> Mapping[str, Any]:
        return {
            "var": var.handle,
            "accum": self.get_slot(var, "momentum").handle,
            "lr": _hyper(self, "learning_rate", var),
            "momentum": _hyper(self, "momentum", var),
            "use_nesterov": self.nesterov,
        }


class Adagrad(tf_keras.optimizers.legacy.Adagrad):
    """``accum += gradient ** 2; variable -= learning_rate * gradient / sqrt(accum)``: there is no epsilon."""

    def _resource_apply_dense(self, grad: Tensor, var: Variable, apply_state: Any = None) -> Any:
        return ops.ResourceApplyAdagrad(grad=grad, **self._arguments(var), use_locking=self._use_locking)

    def _resource_apply_sparse(self, grad: Tensor, var: Variable, indices: Tensor, apply_state: Any = None) -> Any:
        return ops.ResourceSparseApplyAdagrad(grad=grad, indices=indices, **self._arguments(var), use_locking=self._use_locking)

    def _arguments(self, var: Variable) -> Mapping[str, Any]:
        accum = self.get_slot(var, "accumulator")
        return {"var": var.handle, "accum": accum.handle, "lr": _hyper(self, "learning_rate", var)}


class Adam(tf_keras.optimizers.legacy.Adam):
    """Adam with TF1's running products ``beta1_power`` and ``beta2_power`` in place of ``pow(beta, iterations)``.

    Attributes:
        powers: the two variables, by TF1's names.
    """

    def _create_slots(self, var_list: list[Variable]) -> None:
        super()._create_slots(var_list)
        if not hasattr(self, "powers"):
            self.powers = {name: self._new_power(name, beta) for name, beta in _BETAS.items()}

    def _new_power(self, name: str, beta: str) -> Variable:
        return tf.Variable(
            tf.convert_to_tensor(self._get_hyper(beta, tf.float32)),
            name=name,
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

    def _distributed_apply(self, distribution: Any, *args: Any, **kwargs: Any) -> Any:
        applied = super()._distributed_apply(distribution, *args, **kwargs)
        with tf.control_dependencies([applied] if applied is not None else []):
            for name, power in self.powers.items():
                power.assign(power * self._get_hyper(_BETAS[name], power.dtype))
        return applied

    def _resource_apply_dense(self, grad: Tensor, var: Variable, apply_state: Any = None) -> Any:
        return ops.ResourceApplyAdam(
            var=var.handle,
            m=self.get_slot(var, "m").handle,
            v=self.get_slot(var, "v").handle,
            beta1_power=self._power("beta1_power", var),
            beta2_power=self._power("beta2_power", var),
            lr=_hyper(self, "learning_rate", var),
            beta1=_hyper(self, "beta_1", var),
            beta2=_hyper(self, "beta_2", var),
            epsilon=tf.constant(self.epsilon, var.dtype.base_dtype),
            grad=grad,
            use_locking=self._use_locking,
        )

    def _resource_apply_sparse(self, grad: Tensor, var: Variable, indices: Tensor, apply_state: Any = None) -> Any:
        beta_1, beta_2 = _hyper(self, "beta_1", var), _hyper(self, "beta_2", var)
        rate = _hyper(self, "learning_rate", var) * tf.sqrt(1 - self._power("beta2_power", var))
        rate = rate / (1 - self._power("beta1_power", var))
        m = self._decayed(self.get_slot(var, "m"), beta_1, grad * (1 - beta_1), indices)
        v = self._decayed(self.get_slot(var, "v"), beta_2, (grad * grad) * (1 - beta_2), indices)
        return var.assign_sub(rate * m / (tf.sqrt(v) + self.epsilon), use_locking=self._use_locking)

    def _decayed(self, slot: Variable, beta: Tensor, values: Tensor, indices: Tensor) -> Tensor:
        with tf.control_dependencies([slot.assign(slot * beta, use_locking=self._use_locking)]):
            return self._resource_scatter_add(slot, indices, values)

    def _power(self, name: str, var: Variable) -> Tensor:
        return tf.cast(self.powers[name].read_value(), var.dtype.base_dtype)


class RMSprop(tf_keras.optimizers.legacy.RMSprop):
    """RMSProp by TF1's kernels, whose sparse form differs from Keras'; the momentum slot is always there."""

    def _create_slots(self, var_list: list[Variable]) -> None:
        super()._create_slots(var_list)
        for var in var_list:
            self.add_slot(var, "momentum")

    def _resource_apply_dense(self, grad: Tensor, var: Variable, apply_state: Any = None) -> Any:
        kernel = ops.ResourceApplyCenteredRMSProp if self.centered else ops.ResourceApplyRMSProp
        return kernel(grad=grad, **self._arguments(var), use_locking=self._use_locking)

    def _resource_apply_sparse(self, grad: Tensor, var: Variable, indices: Tensor, apply_state: Any = None) -> Any:
        kernel = ops.ResourceSparseApplyCenteredRMSProp if self.centered else ops.ResourceSparseApplyRMSProp
        return kernel(grad=grad, indices=indices, **self._arguments(var), use_locking=self._use_locking)

    def _arguments(self, var: Variable) -> Mapping[str, Any]:
        slots = {"ms": "rms", "mom": "momentum"} | ({"mg": "mg"} if self.centered else {})
        return {
            "var": var.handle,
            **{argument: self.get_slot(var, slot).handle for argument, slot in slots.items()},
            "lr": _hyper(self, "learning_rate", var),
            "rho": _hyper(self, "rho", var),
            "momentum": _hyper(self, "momentum", var),
            "epsilon": tf.constant(self.epsilon, var.dtype.base_dtype),
        }


def _hyper(optimizer: Any, name: str, var: Variable) -> Tensor:
    return tf.identity(optimizer._get_hyper(name, var.dtype.base_dtype))
