"""Tensors of the graph that a callback asked to see of a step: kept in variables, since a compiled loop returns long after that step."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.carving import Tensor
from estimator_bridge.modern.transplant import Transplant


class Report:
    """Where a function of many steps leaves what ``transplant.reported`` was at one of them.

    Args:
        transplant: what is trained.

    Attributes:
        variables: one for each reported tensor.
    """

    def __init__(self, transplant: Transplant) -> None:
        self._transplant = transplant
        self.variables = [
            tf.Variable(_empty(tensor.dtype), shape=tf.TensorShape(None), trainable=False) for tensor in transplant.reported
        ]

    def early(self, needed: Tensor) -> dict[str, Tensor]:
        """What the report reads before the step: call it there; of no use where it is not ``needed``."""
        templates = self._transplant.early if self.variables else ()
        if not templates:
            return {}
        values = tf.cond(needed, self._transplant.read_early, lambda: [tf.constant(_empty(one.dtype)) for one in templates])
        tensors = tf.nest.flatten(values)  # one value comes without its list
        for template, tensor in zip(templates, tensors, strict=True):
            tensor.set_shape(template.shape)
        return {template.name: tensor for template, tensor in zip(templates, tensors, strict=True)}

    def keep(self, needed: Tensor, known: dict[str, Tensor]) -> None:
        """Leaves the report of the step that gave ``known``, which holds ``early`` too, where it is ``needed``."""
        if self.variables:
            tf.cond(needed, lambda: self._keep(known), lambda: None)

    def _keep(self, known: dict[str, Tensor]) -> None:
        for variable, value in zip(self.variables, self._transplant.report(known), strict=True):
            variable.assign(value)


def _empty(dtype: tf.DType) -> Any:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)
