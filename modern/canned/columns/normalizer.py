"""A column's normalizer_fn, kept as the graph that it builds."""

from __future__ import annotations

from typing import Any

import tf_keras

from estimator_bridge.modern.canned.columns.inputs import Column, Tensor
from estimator_bridge.modern.canned.graph_function import GraphFunction


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class Normalizer(tf_keras.layers.Layer):
    """Applies a column's normalizer_fn.

    Args:
        function: Function of a dense or a sparse tensor.
    """

    def __init__(self, function: GraphFunction, **kwargs: Any) -> None:
        super().__init__(autocast=False, **{key: value for key, value in kwargs.items() if key != "autocast"})
        self._function = function

    @classmethod
    def of(cls, column: Column, values: Tensor, name: str) -> Normalizer:
        """Returns the layer of a column for values of this kind.

        Raises:
            NotSupportedError: if the function keeps variables or tables, or calls Python while it runs.
        """
        function = GraphFunction.of(column.normalizer_fn, [values.type_spec], f"normalizer_fn of {column.key!r}")
        return cls(function, name=name)

    def call(self, values: Tensor) -> Tensor:
        """Returns the normalized values."""
        return self._function(values)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {**super().get_config(), "function": self._function}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Normalizer:
        """Returns the same layer."""
        return cls(**tf_keras.saving.deserialize_keras_object(config))
