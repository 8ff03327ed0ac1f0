"""AddSign and PowerSign (Bello et al., 2017, Neural Optimizer Search with Reinforcement Learning), and decays for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

DecayFn = Callable[[Any], tf.Tensor]


class _SignOptimizer(tf.train.Optimizer):
    """A gradient's step that is the larger the more its sign agrees with the sign of the moving average ``m``."""

    def __init__(
        self, learning_rate: Any, beta: float, sign_decay_fn: DecayFn | None, use_locking: bool, name: str, **strength: float
    ) -> None:
        super().__init__(use_locking, name)
        self._constants = {"learning_rate": learning_rate, "beta": beta, **strength}
        self._sign_decay_fn = sign_decay_fn
        self._tensors: dict[str, tf.Tensor] = {}

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> tf.Operation:
        """As ``tf.train.Optimizer.apply_gradients``; the decay of the sign follows ``global_step``."""
        decay = 1.0 if self._sign_decay_fn is None else self._sign_decay_fn(global_step)
        self._tensors["sign_decay"] = tf.convert_to_tensor(decay, name="sign_decay")
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _prepare(self) -> None:
        self._tensors.update((name, tf.convert_to_tensor(value, name=name)) for name, value in self._constants.items())

    def _cast(self, var: Any, *names: str) -> list[tf.Tensor]:
        return [tf.cast(self._tensors[name], var.dtype.base_dtype) for name in names]

    def _operands(self, grad: tf.Tensor, var: Any) -> dict[str, Any]:
        learning_rate, beta, sign_decay = self._cast(var, "learning_rate", "beta", "sign_decay")
        operands = {"lr": learning_rate, "beta": beta, "sign_decay": sign_decay}
        return operands | {"grad": grad, "use_locking": self._use_locking}

    def _multiplier(self, var: Any, agreement: tf.Tensor) -> tf.Tensor:
        """What the gradient is multiplied by, from the decayed product of the signs."""
        raise NotImplementedError

    def _apply_sparse(self, grad: tf.IndexedSlices, var: Any) -> tf.Operation:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: tf.Tensor, var: Any, indices: tf.Tensor) -> tf.Operation:
        learning_rate, beta, sign_decay = self._cast(var, "learning_rate", "beta", "sign_decay")
        slot = self.get_slot(var, "m")
        gradient = tf.convert_to_tensor(tf.IndexedSlices(grad, indices, tf.shape(var)))
        m = slot.assign(slot * beta + gradient * (1 - beta), use_locking=self._use_locking)
        agreement = sign_decay * tf.gather(tf.sign(m), indices) * tf.sign(grad)
        step = learning_rate * self._multiplier(var, agreement) * grad
        return tf.group(tf.scatter_sub(var, indices, step, use_locking=self._use_locking), m)


class AddSignOptimizer(_SignOptimizer):
    """``variable -= learning_rate * (alpha + decay * sign(gradient) * sign(m)) * gradient``.

    Args:
        learning_rate: 0.1 unless given.
        alpha: what a gradient of unknown agreement is multiplied by.
        beta: decay of the moving average ``m``.
        sign_decay_fn: gives the decay for a global step.
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: float = 1.0,
        beta: float = 0.9,
        sign_decay_fn: DecayFn | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name, alpha=alpha)

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        (alpha,) = self._cast(var, "alpha")
        m = self.get_slot(var, "m")
        return tf.raw_ops.ApplyAddSign(var=var._ref(), m=m._ref(), alpha=alpha, **self._operands(grad, var)).op

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        (alpha,) = self._cast(var, "alpha")
        m = self.get_slot(var, "m")
        return tf.raw_ops.ResourceApplyAddSign(var=var.handle, m=m.handle, alpha=alpha, **self._operands(grad, var))

    def _multiplier(self, var: Any, agreement: tf.Tensor) -> tf.Tensor:
        (alpha,) = self._cast(var, "alpha")
        return alpha + agreement


class PowerSignOptimizer(_SignOptimizer):
    """``variable -= learning_rate * base ** (decay * sign(gradient) * sign(m)) * gradient``.

    Args:
        learning_rate: 0.1 unless given.
        base: e unless given.
        beta: decay of the moving average ``m``.
        sign_decay_fn: gives the decay for a global step.
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: float = 0.9,
        sign_decay_fn: DecayFn | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name, logbase=math.log(base))

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        (logbase,) = self._cast(var, "logbase")
        m = self.get_slot(var, "m")
        return tf.raw_ops.ApplyPowerSign(var=var._ref(), m=m._ref(), logbase=logbase, **self._operands(grad, var)).op

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        (logbase,) = self._cast(var, "logbase")
        m = self.get_slot(var, "m")
        return tf.raw_ops.ResourceApplyPowerSign(var=var.handle, m=m.handle, logbase=logbase, **self._operands(grad, var))

    def _multiplier(self, var: Any, agreement: tf.Tensor) -> tf.Tensor:
        (logbase,) = self._cast(var, "logbase")
        return tf.exp(logbase * agreement)


def get_linear_decay_fn(decay_steps: int) -> DecayFn:
    """A decay from 1 to 0 in so many steps."""

    def decay(global_step: Any) -> tf.Tensor:
        return 1.0 - _fraction(global_step, decay_steps)

    return decay


def get_cosine_decay_fn(decay_steps: int, num_periods: float = 0.5, zero_after: float | None = None) -> DecayFn:
    """A decay along a cosine.

    Args:
        decay_steps: how long it lasts.
        num_periods: how often the cosine comes back to 1 in that time.
        zero_after: 0 from this period on.
    """

    def decay(global_step: Any) -> tf.Tensor:
        periods = num_periods * _fraction(global_step, decay_steps)
        return _zero_after(zero_after, periods, 0.5 * (1.0 + tf.cos(2 * math.pi * periods)))

    return decay


def get_restart_decay_fn(decay_steps: int, num_periods: int = 1, zero_after: float | None = None) -> DecayFn:
    """A decay along half a cosine, again and again (Loshchilov and Hutter, 2017, SGDR).

    Args:
        decay_steps: how long it lasts.
        num_periods: how often it starts in that time.
        zero_after: 0 from this period on.
    """

    def decay(global_step: Any) -> tf.Tensor:
        step = tf.minimum(_given(global_step), decay_steps)
        fraction = tf.mod(num_periods * tf.cast(step, tf.float32), decay_steps) / decay_steps
        periods = tf.cast(num_periods * step, tf.float32) / decay_steps
        return _zero_after(zero_after, periods, 0.5 * (1.0 + tf.cos(math.pi * fraction)))

    return decay


def _given(global_step: Any) -> Any:
    if global_step is None:
        raise ValueError("global_step is required for the decay.")
    return global_step


def _fraction(global_step: Any, decay_steps: int) -> tf.Tensor:
    return tf.cast(tf.minimum(_given(global_step), decay_steps), tf.float32) / decay_steps


def _zero_after(zero_after: float | None, periods: tf.Tensor, decay: tf.Tensor) -> tf.Tensor:
    return decay if zero_after is None else tf.where(periods >= zero_after, 0.0, decay)
