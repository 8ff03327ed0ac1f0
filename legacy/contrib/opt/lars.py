"""LARS: a learning rate for each layer (You, Gitman and Ginsburg, 2017)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tensorflow.compat.v1 as tf


class LARSOptimizer(tf.train.MomentumOptimizer):
    """Momentum whose learning rate is scaled by the ratio of a variable's norm to its gradient's.

    Sparse gradients are applied as Momentum applies them. The slot is ``VARIABLE/LARSOptimizer``.

    Args:
        learning_rate: the base learning rate.
        momentum: 0.9 unless given.
        weight_decay: added to the gradient, times the variable.
        eeta: the trust in the ratio.
        epsilon: added to the denominator.
        skip_list: a variable whose name has one of these in it gets the base learning rate and no weight decay.

    Raises:
        ValueError: ``momentum`` or ``weight_decay`` is negative.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Collection[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}")
        super().__init__(learning_rate, momentum, name=name, use_nesterov=use_nesterov)
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list or ()

    def compute_lr(self, grad: tf.Tensor, var: Any) -> tuple[Any, tf.Tensor]:
        """The learning rate for a variable, and its gradient with the weight decay."""
        if any(skipped in var.name for skipped in self._skip_list):
            return self._learning_rate, grad
        norm, gradient_norm = tf.norm(var, ord=2), tf.norm(grad, ord=2)
        ratio = self._eeta * norm / (gradient_norm + self._weight_decay * norm + self._epsilon)
        trust = tf.where((norm > 0) & (gradient_norm > 0), ratio, tf.ones_like(ratio))
        return self._learning_rate * trust, grad + self._weight_decay * var

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Tensor:
        operands, accumulator = self._operands(grad, var), self.get_slot(var, "momentum")
        return tf.raw_ops.ApplyMomentum(var=var._ref(), accum=accumulator._ref(), **operands)

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        operands, accumulator = self._operands(grad, var), self.get_slot(var, "momentum")
        return tf.raw_ops.ResourceApplyMomentum(var=var.handle, accum=accumulator.handle, **operands)

    def _operands(self, grad: tf.Tensor, var: Any) -> dict[str, Any]:
        learning_rate, grad = self.compute_lr(grad, var)
        dtype = var.dtype.base_dtype
        # The accumulator holds steps, not gradients: a change of the learning rate does not change what it has gathered.
        return {
            "lr": tf.ones([], dtype),
            "grad": grad * learning_rate,
            "momentum": tf.cast(self._momentum_tensor, dtype),
            "use_nesterov": self._use_nesterov,
        }
