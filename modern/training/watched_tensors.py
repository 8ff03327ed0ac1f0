"""Tensors that callbacks watch, kept in variables, since a compiled loop returns long after the step that they belong to."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.step.transplant import Transplant


class WatchedTensors:
    """Variables in which a function of many steps keeps a transplant's observations of one step.

    Args:
        transplant: Training step with its observations.

    Attributes:
        variables: One variable for each tensor of each observation.
    """

    def __init__(self, transplant: Transplant) -> None:
        self._transplant = transplant
        self._kept = [
            [tf.Variable(_empty(one.dtype), shape=tf.TensorShape(None), trainable=False) for one in observation.late.outputs]
            for observation in transplant.observations
        ]
        self.variables = [variable for variables in self._kept for variable in variables]

    def read_early(self, needed: Tensor) -> list[dict[str, Tensor]]:
        """Reads what each observation needs from before the step; call it there.

        Args:
            needed: Scalar boolean.

        Returns:
            Name -> tensor for each observation, void unless it is ``needed`` and wanted.
        """
        return [self._read_early(index, needed) for index in range(len(self._kept))]

    def _read_early(self, index: int, needed: Tensor) -> dict[str, Tensor]:
        templates = self._transplant.observations[index].early.outputs
        if not templates:
            return {}
        read = functools.partial(self._transplant.read_early, index)
        needed = needed & self._transplant.wanted[index]
        values = tf.cond(needed, read, lambda: [tf.constant(_empty(one.dtype)) for one in templates])
        tensors = tf.nest.flatten(values)  # one value comes without its list
        for template, tensor in zip(templates, tensors, strict=True):
            tensor.set_shape(template.shape)
        return {template.name: tensor for template, tensor in zip(templates, tensors, strict=True)}

    def keep(self, needed: Tensor, known: dict[str, Tensor], early: Sequence[dict[str, Tensor]]) -> None:
        """Keeps the wanted observations of a step if it is ``needed``.

        Args:
            needed: Scalar boolean.
            known: Tensors of the step by name.
            early: Result of ``read_early``.
        """
        for index, variables in enumerate(self._kept):
            if variables:
                keep = functools.partial(self._keep, index, known | early[index])
                tf.cond(needed & self._transplant.wanted[index], keep, lambda: None)

    def _keep(self, index: int, known: dict[str, Tensor]) -> None:
        for variable, value in zip(self._kept[index], self._transplant.report(index, known), strict=True):
            variable.assign(value)


def _empty(dtype: tf.DType) -> Any:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)
