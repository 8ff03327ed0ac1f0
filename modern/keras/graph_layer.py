"""A layer whose config holds a part of a TF1 graph, so that .keras and .h5 files can keep the predictions of a model_fn."""

from __future__ import annotations

import base64
import uuid
import zlib
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
import tf_keras
from tensorflow.python.ops.resource_variable_ops import variable_accessed

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import Fragment, Tensor, all_nodes, is_source, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation, v1


def predicting_model(model: ModelGraph, variables: Mapping[str, Any], features: Any) -> tf_keras.Model:
    """Makes a functional model of the predictions of a model_fn, with copies of its variables.

    Args:
        model: Graph of PREDICT mode.
        variables: Operation name -> variable of the graph.
        features: Specs of a batch of features, in their structure.

    Returns:
        A model that any format of Keras saves; ``tf_keras.models.load_model`` needs no script to load it.

    Raises:
        NotSupportedError: Lookup tables read files, or predictions need loops, branches or Python, which have no place in these formats.
    """
    outputs = tf.nest.flatten(model.spec.predictions)
    fragment = Fragment.cut(upstream([tensor.op for tensor in outputs], is_source), outputs)
    _refuse_unsavable(fragment.graph_def, model.collection(v1.GraphKeys.ASSET_FILEPATHS))
    model.check_fed(fragment.inputs)
    filling = [operation(one) for one in model.collection(v1.GraphKeys.TABLE_INITIALIZERS)]
    layer = GraphLayer(
        _text(fragment.graph_def),
        _text(Fragment.cut(upstream(filling), []).graph_def),
        {name: _described(variables[name]) for name in (handle.op.name for handle in fragment.handles)},
        {tensor.name: _described(tensor) for tensor in fragment.inputs},
        [tensor.name for tensor in model.batch],
        [tensor.name for tensor in outputs],
        [handle.op.name for handle in fragment.handles if variables[handle.op.name].trainable],
    )
    for name, variable in layer.by_name.items():
        variable.assign(variables[name].numpy())
    inputs = tf.nest.map_structure(_input, features)
    return tf_keras.Model(inputs, tf.nest.pack_sequence_as(model.spec.predictions, layer(inputs)))


@tf_keras.utils.register_keras_serializable("estimator_bridge")
class GraphLayer(tf_keras.layers.Layer):
    """Computes tensors of a graph from a batch.

    Args:
        graph: Text of the operations, see ``_text``.
        filling: Text of the operations that fill the graph's tables.
        variables: Operation name of a variable -> its type and shape.
        inputs: Name of a tensor that the operations read -> its type and shape.
        batch: Names of the tensors of a batch, in their order.
        outputs: Names of the tensors to return, in their order.
        learned: Operation names of the trainable variables.

    Attributes:
        by_name: Operation name -> variable.
    """

    def __init__(
        self,
        graph: str,
        filling: str,
        variables: Mapping[str, Sequence[Any]],
        inputs: Mapping[str, Sequence[Any]],
        batch: Sequence[str],
        outputs: Sequence[str],
        learned: Sequence[str],
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"autocast": False} | kwargs)
        self._parts = {"graph": graph, "filling": filling, "variables": variables, "inputs": inputs}
        self._parts |= {"batch": batch, "outputs": outputs, "learned": learned}
        self.by_name = {
            name: self.add_weight(name, shape, dtype, "zeros", trainable=name in learned)
            for name, (dtype, shape) in variables.items()
        }
        tables = uuid.uuid4().hex.encode()  # tables of one name would be one table, also those of two files
        handles = tuple(_tensor(f"{name}:0", *described) for name, described in variables.items())
        read = tuple(_tensor(name, *described) for name, described in inputs.items())
        fragment = Fragment(_graph_def(graph, tables), handles, read, tuple(_tensor(name) for name in outputs))
        self._compute = fragment.function([variable.handle for variable in self.by_name.values()])
        Fragment(_graph_def(filling, tables), (), (), ()).function([])([], [])

    def call(self, inputs: Any) -> list[Tensor]:
        """Returns the tensors for a batch, given in the structure of its features."""
        known = dict(zip(self._parts["batch"], tf.nest.flatten(inputs, expand_composites=True), strict=True))
        for variable in self.by_name.values():
            variable_accessed(variable)  # a gradient tape sees no use of a handle
        handles = [variable.handle for variable in self.by_name.values()]
        outputs: list[Tensor] = self._compute(handles, [known[name] for name in self._parts["inputs"]])
        return outputs

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return super().get_config() | {name: tf.nest.map_structure(lambda one: one, part) for name, part in self._parts.items()}


def _refuse_unsavable(graph_def: Any, files: Sequence[Tensor]) -> None:
    # Processes number functions alike, so one of another model would run in place of one from a file.
    own = [function.signature.name for function in graph_def.library.function]
    nodes = all_nodes(graph_def)
    own += [node.name for node in nodes if "PyFunc" in node.op or "_gradient_op_type" in node.attr]
    own += [tf.compat.as_str(tf.get_static_value(tensor).item()) for tensor in files]
    if own:
        raise NotSupportedError(
            "A .keras or .h5 file cannot hold the predictions of this model_fn.",
            expected="predictions without loops, branches, tf.function, Python, gradients of its own, and tables that read files",
            received=own[0],
            fix="Save a SavedModel: give a path without suffix.",
        )


def _text(graph_def: Any) -> str:
    """Returns a GraphDef as text: packed, in base64."""
    return base64.b64encode(zlib.compress(graph_def.SerializeToString())).decode()


def _graph_def(text: str, tables: bytes) -> Any:
    """Reads a GraphDef; the names that its tables share begin with ``tables``."""
    graph_def = v1.GraphDef.FromString(zlib.decompress(base64.b64decode(text)))
    for node in graph_def.node:
        if "shared_name" in node.attr:
            node.attr["shared_name"].s = tables + node.attr["shared_name"].s
    return graph_def


def _described(tensor: Any) -> tuple[str, list[int | None] | None]:
    return tensor.dtype.base_dtype.name, None if tensor.shape.rank is None else tensor.shape.as_list()


def _tensor(name: str, dtype: str = "float32", shape: Sequence[int | None] | None = None) -> Any:
    """Returns what a fragment has to know of a tensor outside of it."""
    return SimpleNamespace(
        name=name, op=SimpleNamespace(name=name.partition(":")[0]), dtype=tf.as_dtype(dtype), shape=tf.TensorShape(shape)
    )


def _input(spec: Any) -> Any:
    kinds = {"sparse": isinstance(spec, tf.SparseTensorSpec), "ragged": isinstance(spec, tf.RaggedTensorSpec)}
    return tf_keras.Input(batch_shape=spec.shape, dtype=spec.dtype, name=getattr(spec, "name", None), **kinds)
