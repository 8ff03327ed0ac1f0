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

    def read_early(self, needed: Tensor) -> dict[str, Tensor]:
        """Reads what the observations need from before the step; call it there. The values are void unless ``needed``."""
        known: dict[str, Tensor] = {}
        for index, observation in enumerate(self._transplant.observations):
            if observation.early.outputs:
                values = self._read_early(index, observation.early.outputs, needed & self._transplant.wanted[index])
                known |= {_key(index, name): value for name, value in values.items()}
        return known

    def _read_early(self, index: int, templates: Sequence[Tensor], needed: Tensor) -> dict[str, Tensor]:
        read = functools.partial(self._transplant.read_early, index)
        values = tf.cond(needed, read, lambda: [tf.constant(_empty(one.dtype)) for one in templates])
        tensors = tf.nest.flatten(values)  # one value comes without its list
        for template, tensor in zip(templates, tensors, strict=True):
            tensor.set_shape(template.shape)
        return {template.name: tensor for template, tensor in zip(templates, tensors, strict=True)}

    def keep(self, needed: Tensor, known: dict[str, Tensor]) -> None:
        """Keeps the wanted observations of a step if it is ``needed``.

        Args:
            needed: Scalar boolean.
            known: Tensors of the step and those of ``read_early``, by name.
        """
        for index, variables in enumerate(self._kept):
            if variables:
                keep = functools.partial(self._keep, index, known)
                tf.cond(needed & self._transplant.wanted[index], keep, lambda: None)

    def _keep(self, index: int, known: dict[str, Tensor]) -> None:
        early = {tensor.name: known[_key(index, tensor.name)] for tensor in self._transplant.observations[index].early.outputs}
        for variable, value in zip(self._kept[index], self._transplant.report(index, known | early), strict=True):
            variable.assign(value)


def _key(index: int, name: str) -> str:
    """Returns a key for one observation, since two may read the same tensor early and only one of them be wanted."""
    return f"{index} {name}"


def _empty(dtype: tf.DType) -> Any:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)
