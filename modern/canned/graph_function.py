"""A script's functions as the graphs that they build, so that a saved model can contain them."""

from __future__ import annotations

import base64
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import tf_keras
from tensorflow.python.framework.ops import gradient_registry
from tensorflow.python.saved_model.function_deserialization import fix_node_def, load_function_def_library

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.fragments import all_nodes
from estimator_bridge.modern.graph.model_graph import control_flow_v2

Tensor = Any
v1 = tf.compat.v1
_FIX_OF_ACTIVATIONS = (
    "Use model.save_weights, or model.export to keep only the predictions: a .keras file cannot contain Python code."
)


class NotKeptError(NotSupportedError):
    """Raised for a function that no graph can hold. It can still be called, but it cannot be saved."""


@tf_keras.saving.register_keras_serializable("estimator_bridge")
class GraphFunction:
    """A graph of TensorFlow operations that is called like the function that built it.

    A saved model would keep the Python function's name or its code. A name cannot be loaded without the script, code only from
    trusted files. A graph contains the function's constants and needs nothing else, as in an Estimator's own exported model.

    Args:
        graph: GraphDef, in base64.
        feeds: Names of the tensors that receive the arguments: one for each argument, three for a sparse tensor.
        fetches: Names of the tensors that hold the result: one, or three for a sparse tensor.
    """

    def __init__(self, graph: str, feeds: Sequence[str], fetches: Sequence[str]) -> None:
        self._graph, self._feeds, self._fetches = graph, list(feeds), list(fetches)
        self._run = _import_graph(graph, tuple(feeds), tuple(fetches))

    @classmethod
    def of(
        cls,
        function: Callable[..., Tensor],
        specs: Sequence[Any],
        what: str,
        fix: str = "Move this computation to the input_fn.",
    ) -> GraphFunction:
        """Returns the graph of a function, which is called in a plain tf.Graph as an Estimator does.

        Args:
            function: Function that takes one tensor for each of the specs.
            specs: ``tf.TensorSpec`` or ``tf.SparseTensorSpec`` objects.
            what: Name of the function in errors.
            fix: Advice in errors.

        Raises:
            NotSupportedError: if the function keeps variables: each call would create new ones.
            NotKeptError: if it keeps tables, calls Python while it runs, or has a custom gradient.

        Example:
            >>> double = GraphFunction.of(lambda values: 2.0 * values, [tf.TensorSpec([None])], "double")
            >>> GraphFunction.from_config(double.get_config())(tf.constant([1.0, 4.0])).numpy().tolist()
            [2.0, 8.0]
        """
        with tf.Graph().as_default() as graph, control_flow_v2():
            fed = [_placeholder(spec) for spec in specs]
            result = function(*fed)
            result = result if isinstance(result, tf.SparseTensor) else tf.convert_to_tensor(result)
            _refuse_unsavable(graph, what, fix)
        encoded = base64.b64encode(graph.as_graph_def().SerializeToString(deterministic=True)).decode()
        return cls(encoded, _names(fed), _names(result))

    def __call__(self, *arguments: Tensor) -> Tensor:
        """Returns the function's result; arguments are cast to the types that the graph was built for."""
        results = self._run(*tf.nest.flatten(arguments, expand_composites=True))
        return tf.SparseTensor(*results) if len(self._fetches) > 1 else results[0]

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of ``from_config``."""
        return {"graph": self._graph, "feeds": self._feeds, "fetches": self._fetches}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> GraphFunction:
        """Returns the same function."""
        return cls(**config)


def keep_activation(function: Any, width: int, what: str = "activation_fn") -> Any:
    """Returns the ``activation`` argument that a Keras layer needs for an ``activation_fn``.

    A ``.keras`` file stores only a function's name, and loading it finds Keras' function of that name. For a script's own ``swish``
    that is another function, so that it is stored as a graph.

    Args:
        function: Function of a tensor of shape [batch, width], the name of a Keras activation, or None.
        width: Number of the layer's units.
        what: Name of the function in errors.

    Raises:
        NotSupportedError: if the function keeps variables.

    Example:
        >>> keep_activation(tf.nn.relu, 2) is tf.nn.relu
        True
        >>> keep_activation(lambda net: 2.0 * net, 2)(tf.constant([[1.0, 4.0]])).numpy().tolist()
        [[2.0, 8.0]]
    """
    if function is None or isinstance(function, (str, tf_keras.layers.Layer)) or _is_of_keras(function):
        return function
    try:
        return GraphFunction.of(function, [tf.TensorSpec([None, width])], what, _FIX_OF_ACTIVATIONS)
    except NotKeptError as refusal:
        return _UnsavableActivation(function, refusal)


def _is_of_keras(function: Callable[[Tensor], Tensor]) -> bool:
    """Returns True if Keras has the same function under the same name; TensorFlow's own compute the same."""
    name = getattr(function, "__name__", "")
    modules = (tf.nn, tf.math, tf.keras.activations, tf_keras.activations)
    theirs = [getattr(module, name, None) for module in modules]
    return theirs[-1] is not None and any(function is one for one in theirs)


class _UnsavableActivation:
    """An activation that no graph can hold: it trains and predicts, but it cannot be written to a ``.keras`` file."""

    def __init__(self, function: Callable[[Tensor], Tensor], refusal: NotKeptError) -> None:
        self._function, self._refusal = function, refusal

    def __call__(self, net: Any) -> Any:
        return self._function(net)

    def get_config(self) -> dict[str, Any]:
        """Raises the refusal when Keras writes a file."""
        raise self._refusal


@functools.cache
def _import_graph(graph: str, feeds: Sequence[str], fetches: Sequence[str]) -> Callable[..., list[Tensor]]:
    graph_def = v1.GraphDef.FromString(base64.b64decode(graph))
    for function in graph_def.library.function:
        function.attr.pop("_noinline", None)  # TensorFlow 2.21 finds no gradient of a TF1 Defun that is not inlined
    # Functions get new names: scripts number theirs in the same way, and a process accepts each name once.
    functions = load_function_def_library(graph_def.library)
    for node in graph_def.node:
        fix_node_def(node, functions, "")
    graph_def.ClearField("library")
    types = {node.name: tf.as_dtype(node.attr["dtype"].type) for node in graph_def.node if "dtype" in node.attr}
    wanted = [types[name.partition(":")[0]] for name in feeds]
    called = {function.name.decode(): function for function in functions.values()}

    @tf.function(autograph=False)
    def run(*values: Tensor) -> list[Tensor]:
        fed = {name: tf.cast(value, dtype) for name, value, dtype in zip(feeds, values, wanted, strict=True)}
        within = v1.get_default_graph()
        for function in functions.values():
            function.add_to_graph(within)
        results: list[Tensor] = tf.graph_util.import_graph_def(graph_def, fed, fetches, name="")
        for op in within.get_operations():
            if op.type in ("PartitionedCall", "StatefulPartitionedCall"):
                op._gradient_function = called[op.get_attr("f").name]._get_gradient_function()
            elif op.type in called:
                op._gradient_function = _gradient_of_call
        return results

    return run


def _gradient_of_call(op: Any, *upstream: Tensor) -> Any:
    """Returns the symbolic gradient that TensorFlow itself uses for a function that is an operation."""
    return tf.raw_ops.SymbolicGradient(input=[*op.inputs, *upstream], Tout=[given.dtype for given in op.inputs], f=op.type)


def _placeholder(spec: Any) -> Tensor:
    make = v1.sparse_placeholder if isinstance(spec, tf.SparseTensorSpec) else v1.placeholder
    return make(spec.dtype, spec.shape if spec.shape.rank is None else tuple(spec.shape))


def _names(value: Any) -> list[str]:
    return [tensor.name for tensor in tf.nest.flatten(value, expand_composites=True)]


def _refuse_unsavable(graph: tf.Graph, what: str, fix: str) -> None:
    graph_def = graph.as_graph_def()
    fix_of_variables = "Run the Estimator with `estimator-bridge run --path modern`, which trains any variable."
    python = any("PyFunc" in node.op for node in all_nodes(graph_def))
    own_gradients = "a function with a custom gradient: tf.custom_gradient, a Defun's, a registered one"
    reasons = (
        (NotSupportedError, "a function that keeps variables", _has_collection(graph, "variables"), fix_of_variables),
        (NotKeptError, "a function that keeps tables", _has_collection(graph, "initializer"), fix),
        (NotKeptError, "a function that calls Python while it runs, through py_function", python, fix),
        (NotKeptError, own_gradients, _has_custom_gradient(graph, graph_def), fix),
    )
    for error, received, found, to_do in reasons:
        if found:
            raise error(
                f"The {what} cannot be saved as a graph.",
                expected="only TensorFlow operations on its arguments and constants",
                received=received,
                fix=to_do,
            )


def _has_collection(graph: tf.Graph, ending: str) -> bool:
    """Returns True if a collection of variables or tables is not empty; a tf.function leaves empty ones behind."""
    return any(graph.get_collection(name) for name in graph.get_all_collection_keys() if name.endswith(ending))


def _has_custom_gradient(graph: tf.Graph, graph_def: Any) -> bool:
    """Returns True if an operation has a custom gradient: a GraphDef names it for this process only, a Defun's not at all."""
    inner = (function.graph for function in graph._functions.values() if hasattr(function, "graph"))  # a Defun has none
    operations = itertools.chain.from_iterable(each.get_operations() for each in (graph, *inner))
    return (
        bool(graph_def.library.gradient)
        or any("_gradient_op_type" in node.attr or _is_registered_by_script(node.op) for node in all_nodes(graph_def))
        or any(getattr(getattr(op, "__defun", None), "python_grad_func", None) is not None for op in operations)
    )


def _is_registered_by_script(kind: str) -> bool:
    """Returns True if the gradient of this operation type was registered outside of TensorFlow."""
    try:
        gradient = gradient_registry.lookup(kind)
    except LookupError:
        return False
    return gradient is not None and not gradient.__module__.startswith("tensorflow.")
