"""Adagrad whose accumulators can be left alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf


class RegAdagradOptimizer(tf.train.AdagradOptimizer):
    """Adagrad that applies some gradients, a regularisation loss's for one, without adding them to its accumulators.

    Args:
        learning_rate: as of ``tf.train.AdagradOptimizer``, and so the rest.
    """

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False, name: str = "RegAdagrad"
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._should_update_slots = True

    @contextlib.contextmanager
    def avoid_updating_slots(self) -> Iterator[None]:
        """While active, gradients that are applied do not change the accumulators."""
        before, self._should_update_slots = self._should_update_slots, False
        try:
            yield
        finally:
            self._should_update_slots = before

    def _operands(self, var: Any) -> dict[str, Any]:
        learning_rate = tf.cast(self._learning_rate_tensor, var.dtype.base_dtype)
        return {"lr": learning_rate, "use_locking": self._use_locking, "update_slots": self._should_update_slots}

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Tensor:
        accumulator = self.get_slot(var, "accumulator")
        return tf.raw_ops.ApplyAdagrad(var=var._ref(), accum=accumulator._ref(), grad=grad, **self._operands(var))

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        accumulator = self.get_slot(var, "accumulator")
        return tf.raw_ops.ResourceApplyAdagrad(var=var.handle, accum=accumulator.handle, grad=grad, **self._operands(var))

    def _apply_sparse(self, grad: tf.IndexedSlices, var: Any) -> tf.Tensor:
        accumulator = self.get_slot(var, "accumulator")
        return tf.raw_ops.SparseApplyAdagrad(
            var=var._ref(), accum=accumulator._ref(), grad=grad.values, indices=grad.indices, **self._operands(var)
        )

    def _resource_apply_sparse(self, grad: tf.Tensor, var: Any, indices: tf.Tensor) -> tf.Operation:
        accumulator = self.get_slot(var, "accumulator")
        return tf.raw_ops.ResourceSparseApplyAdagrad(
            var=var.handle, accum=accumulator.handle, grad=grad, indices=indices, **self._operands(var)
        )
