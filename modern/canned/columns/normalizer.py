"""normalizer_fn: a function of the script, kept as the graph that it builds."""

from __future__ import annotations

import base64
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.columns.inputs import Column, Tensor

v1 = tf.compat.v1


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class Normalizer(tf_keras.layers.Layer):
    """A graph of TensorFlow operations, run on a dense or a sparse tensor.

    A Lambda layer would keep the Python function: not loadable without the script, and a lambda only from trusted files. A graph has
    the function's constants and needs nothing else, as in an Estimator's own exported model.

    Args:
        graph: the GraphDef, base64.
        feeds: names of the tensors that the values are fed to: one, or a sparse tensor's three.
        fetches: names of the tensors that hold the result: one, or a sparse tensor's three.
    """

    def __init__(self, graph: str, feeds: list[str], fetches: list[str], **kwargs: Any) -> None:
        super().__init__(autocast=False, **{key: value for key, value in kwargs.items() if key != "autocast"})
        self.graph = graph
        self.feeds = feeds
        self.fetches = fetches

    @classmethod
    def of(cls, column: Column, values: Tensor, name: str) -> Normalizer:
        """The graph of a column's normalizer_fn, called in a plain tf.Graph as an Estimator does.

        Raises:
            NotSupportedError: a function that keeps variables or tables, or calls Python as it runs.
        """
        with tf.Graph().as_default() as graph:
            sparse = isinstance(values.type_spec, tf.SparseTensorSpec)
            placeholder = v1.sparse_placeholder if sparse else v1.placeholder
            fed = placeholder(values.dtype, tuple(values.shape))
            result = column.normalizer_fn(fed)
            result = result if isinstance(result, tf.SparseTensor) else tf.convert_to_tensor(result)
            _refuse_what_is_no_graph(column, graph)
        encoded = base64.b64encode(graph.as_graph_def().SerializeToString(deterministic=True)).decode()
        return cls(encoded, _names(fed), _names(result), name=name)

    def call(self, values: Tensor) -> Tensor:
        """The normalised values."""
        results = self._run(*tf.nest.flatten(values, expand_composites=True))
        return tf.SparseTensor(*results) if len(self.fetches) > 1 else results[0]

    @tf.function
    def _run(self, *values: Tensor) -> list[Tensor]:
        graph_def = v1.GraphDef.FromString(base64.b64decode(self.graph))
        fed = dict(zip(self.feeds, values))  # noqa: B905 -- autograph knows no strict=
        return tf.graph_util.import_graph_def(graph_def, fed, self.fetches, name="")

    def get_config(self) -> dict[str, Any]:
        """What ``from_config`` needs."""
        return {**super().get_config(), "graph": self.graph, "feeds": self.feeds, "fetches": self.fetches}


def _names(value: Tensor) -> list[str]:
    return [tensor.name for tensor in tf.nest.flatten(value, expand_composites=True)]


def _refuse_what_is_no_graph(column: Column, graph: tf.Graph) -> None:
    state = {name for name in graph.get_all_collection_keys() if name.endswith(("variables", "initializer"))}
    python = {operation.type for operation in graph.get_operations() if "PyFunc" in operation.type}
    if state or python:
        raise NotSupportedError(
            f"The normalizer_fn of {column.key!r} is more than a graph of its values.",
            expected="TensorFlow operations on the values and constants",
            received=f"one that adds to {', '.join(sorted(state))}"
            if state
            else "one that calls Python as it runs, by py_function",
            fix="Compute this feature in the input_fn.",
        )
