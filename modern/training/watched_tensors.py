"""Tensors of the graph that a callback asked to see of a step: kept in variables, since a compiled loop returns long after that step."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.step.transplant import Transplant


class Report:
    """Where a function of many steps leaves what the looks of a transplant were at one of them.

    Args:
        transplant: what is trained.

    Attributes:
        variables: one for each tensor of each look.
    """

    def __init__(self, transplant: Transplant) -> None:
        self._transplant = transplant
        self._kept = [
            [tf.Variable(_empty(tensor.dtype), shape=tf.TensorShape(None), trainable=False) for tensor in look.late.outputs]
            for look in transplant.looks
        ]
        self.variables = [variable for variables in self._kept for variable in variables]

    def early(self, needed: Tensor) -> dict[str, Tensor]:
        """What the report reads before the step: call it there; of no use where it is not ``needed``."""
        known: dict[str, Tensor] = {}
        for index, look in enumerate(self._transplant.looks):
            if look.early.outputs:
                values = self._early(index, look.early.outputs, needed & self._transplant.asked[index])
                known |= {_key(index, name): value for name, value in values.items()}
        return known

    def _early(self, look: int, templates: Sequence[Tensor], needed: Tensor) -> dict[str, Tensor]:
        read = functools.partial(self._transplant.read_early, look)
        values = tf.cond(needed, read, lambda: [tf.constant(_empty(one.dtype)) for one in templates])
        tensors = tf.nest.flatten(values)  # one value comes without its list
        for template, tensor in zip(templates, tensors, strict=True):
            tensor.set_shape(template.shape)
        return {template.name: tensor for template, tensor in zip(templates, tensors, strict=True)}

    def keep(self, needed: Tensor, known: dict[str, Tensor]) -> None:
        """Leaves the looks that are asked for at the step that gave ``known``, which holds ``early`` too, where ``needed``."""
        for index, variables in enumerate(self._kept):
            if variables:
                keep = functools.partial(self._keep, index, known)
                tf.cond(needed & self._transplant.asked[index], keep, lambda: None)

    def _keep(self, look: int, known: dict[str, Tensor]) -> None:
        early = {tensor.name: known[_key(look, tensor.name)] for tensor in self._transplant.looks[look].early.outputs}
        for variable, value in zip(self._kept[look], self._transplant.report(look, known | early), strict=True):
            variable.assign(value)


def _key(look: int, name: str) -> str:
    """Two looks may read the same early, and one of them not be asked for."""
    return f"{look} {name}"


def _empty(dtype: tf.DType) -> Any:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)
