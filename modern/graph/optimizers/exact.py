"""Keras optimizers that compute an update as TensorFlow 1 does, to the last bit.

``tf_keras.optimizers.legacy`` follows TF1's rules but not its kernels, and other kernels round differently. Sooner or later such a
difference moves a unit across the corner of a relu, and two correct trainings drift apart. These subclasses run TF1's kernels, so
that a difference between the paths always has a cause. SGD, Ftrl and Adadelta need no subclass, since tf_keras runs the same kernels.
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


class _OneKernel:
    """Mixin that applies an update by one kernel, and reads hyperparameters once for all variables of a device and type.

    Attributes:
        kernels: Kernel for dense gradients, kernel for sparse gradients.
        slot_arguments: Argument of the kernels -> slot.
        read_arguments: Argument of the kernels -> hyperparameter.
        takes_epsilon: True if the kernels have an argument ``epsilon``.
    """

    kernels: tuple[Any, Any]
    slot_arguments: Mapping[str, str]
    read_arguments: Mapping[str, str] = {"lr": "learning_rate"}
    takes_epsilon = False

    def _prepare_local(self: Any, var_device: str, var_dtype: tf.DType, apply_state: Any) -> None:
        names = [name for name in self._hyper if name != "decay"]
        apply_state[var_device, var_dtype] = {name: tf.identity(self._get_hyper(name, var_dtype)) for name in names}

    def _read(self: Any, var: Variable, apply_state: Any) -> Mapping[str, Tensor]:
        key = var.device, var.dtype.base_dtype
        return (apply_state or {}).get(key) or self._fallback_apply_state(*key)

    def _resource_apply_dense(self: Any, grad: Tensor, var: Variable, apply_state: Any = None) -> Any:
        kernel, _ = self.kernels
        return kernel(grad=grad, **self._arguments(var, apply_state), use_locking=self._use_locking)

    def _resource_apply_sparse(self: Any, grad: Tensor, var: Variable, indices: Tensor, apply_state: Any = None) -> Any:
        _, kernel = self.kernels
        return kernel(grad=grad, indices=indices, **self._arguments(var, apply_state), use_locking=self._use_locking)

    def _arguments(self: Any, var: Variable, apply_state: Any) -> dict[str, Any]:
        read = self._read(var, apply_state)
        slots = {argument: self.get_slot(var, slot).handle for argument, slot in self.slot_arguments.items()}
        epsilon = {"epsilon": tf.constant(self.epsilon, var.dtype.base_dtype)} if self.takes_epsilon else {}
        return {"var": var.handle} | slots | {argument: read[name] for argument, name in self.read_arguments.items()} | epsilon


class Momentum(_OneKernel, tf_keras.optimizers.legacy.SGD):
    """``accum = momentum * accum + gradient; variable -= learning_rate * accum``.

    ``legacy.SGD`` keeps ``-learning_rate * accum`` instead, which weighs past gradients differently once the rate changes, and has no
    slot for a momentum of 0.
    """

    kernels = ops.ResourceApplyMomentum, ops.ResourceSparseApplyMomentum
    slot_arguments: Mapping[str, str] = {"accum": "momentum"}
    read_arguments: Mapping[str, str] = {"lr": "learning_rate", "momentum": "momentum"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._momentum = True

    def _arguments(self, var: Variable, apply_state: Any) -> dict[str, Any]:
        return super()._arguments(var, apply_state) | {"use_nesterov": self.nesterov}


class Adagrad(_OneKernel, tf_keras.optimizers.legacy.Adagrad):
    """``accum += gradient ** 2; variable -= learning_rate * gradient / sqrt(accum)``: there is no epsilon."""

    kernels = ops.ResourceApplyAdagrad, ops.ResourceSparseApplyAdagrad
    slot_arguments: Mapping[str, str] = {"accum": "accumulator"}


class Adam(_OneKernel, tf_keras.optimizers.legacy.Adam):
    """Adam with TF1's running products ``beta1_power`` and ``beta2_power`` in place of ``pow(beta, iterations)``.

    Attributes:
        powers: TF1's name -> variable.
    """

    kernels = ops.ResourceApplyAdam, None  # TF1 has no kernel for sparse gradients
    slot_arguments: Mapping[str, str] = {"m": "m", "v": "v"}
    read_arguments: Mapping[str, str] = {
        "lr": "learning_rate",
        "beta1": "beta_1",
        "beta2": "beta_2",
        "beta1_power": "beta1_power",
        "beta2_power": "beta2_power",
    }
    takes_epsilon = True

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

    def _resource_apply_sparse(self, grad: Tensor, var: Variable, indices: Tensor, apply_state: Any = None) -> Any:
        read = self._read(var, apply_state)
        beta_1, beta_2 = read["beta_1"], read["beta_2"]
        rate = read["learning_rate"] * tf.sqrt(1 - read["beta2_power"])
        rate = rate / (1 - read["beta1_power"])
        m = self._decayed(self.get_slot(var, "m"), beta_1, grad * (1 - beta_1), indices)
        v = self._decayed(self.get_slot(var, "v"), beta_2, (grad * grad) * (1 - beta_2), indices)
        return var.assign_sub(rate * m / (tf.sqrt(v) + self.epsilon), use_locking=self._use_locking)

    def _decayed(self, slot: Variable, beta: Tensor, values: Tensor, indices: Tensor) -> Tensor:
        # TensorFlow copies a variable whole at each read and assignment after a scatter into it.
        decayed = tf.tensor_scatter_nd_add(slot * beta, indices[:, tf.newaxis], values)
        slot.assign(decayed, use_locking=self._use_locking, read_value=False)
        return decayed

    def _prepare_local(self, var_device: str, var_dtype: tf.DType, apply_state: Any) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        powers = {name: tf.cast(power.read_value(), var_dtype) for name, power in self.powers.items()}
        apply_state[var_device, var_dtype].update(powers)


class RMSprop(_OneKernel, tf_keras.optimizers.legacy.RMSprop):
    """RMSProp by TF1's kernels, whose sparse form differs from Keras'; the momentum slot is always there."""

    kernels = ops.ResourceApplyRMSProp, ops.ResourceSparseApplyRMSProp
    slot_arguments: Mapping[str, str] = {"ms": "rms", "mom": "momentum"}
    read_arguments: Mapping[str, str] = {"lr": "learning_rate", "rho": "rho", "momentum": "momentum"}
    takes_epsilon = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.centered:
            self.kernels = ops.ResourceApplyCenteredRMSProp, ops.ResourceSparseApplyCenteredRMSProp
            self.slot_arguments = {**self.slot_arguments, "mg": "mg"}

    def _create_slots(self, var_list: list[Variable]) -> None:
        super()._create_slots(var_list)
        for var in var_list:
            self.add_slot(var, "momentum")
