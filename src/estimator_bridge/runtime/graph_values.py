"""Values that belong to graphs and end with them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class GraphValues(Generic[Value]):
    """A value for each graph, kept in the graph itself.

    A WeakKeyDictionary would keep each graph for good whose value refers to it, as tensors and operations do.

    Example:
        >>> import tensorflow as tf
        >>> losses: GraphValues[str] = GraphValues()
        >>> with tf.Graph().as_default() as graph:
        ...     losses[graph] = tf.constant(1.0).name
        >>> losses[graph], losses.get(tf.Graph(), "none")
        ('Const:0', 'none')
    """

    def __init__(self) -> None:
        self._key = f"_estimator_bridge_{id(self)}"

    def __getitem__(self, graph: Any) -> Value:
        """Returns the value of a graph.

        Raises:
            AttributeError: The graph has none.
        """
        value: Value = getattr(graph, self._key)
        return value

    def __setitem__(self, graph: Any, value: Value) -> None:
        """Gives a graph its value."""
        setattr(graph, self._key, value)

    def get(self, graph: Any, default: Value) -> Value:
        """Returns the value of a graph, or the default if it has none."""
        value: Value = getattr(graph, self._key, default)
        return value

    def setdefault(self, graph: Any, default: Value) -> Value:
        """Returns the value of a graph, which is the default from now on if it has none."""
        if not hasattr(graph, self._key):
            self[graph] = default
        return self[graph]
