"""Fragments: sets of operations, cut out of a TF1 graph and made functions of variable handles and tensors.

Automatic control dependencies execute every stateful operation in a ``tf.function``, so a whole graph would run its initialisers at
every step. A fragment holds only the operations that its caller named, and each function imports its fragment once.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import handle_data_util

from estimator_bridge.errors import NotSupportedError, address_of
from estimator_bridge.runtime.dataset_sharding import called_functions, reached_functions
from estimator_bridge.runtime.user_code import is_users

Operation = Any  # tf.Operation: TensorFlow ships no types
Tensor = Any
BATCH = "estimator_bridge/batch"  # a name that no variable of a script has
"""The operations between an input pipeline and its model."""
_CONTROL_FLOW = frozenset({"Case", "If", "While"})
SEEDS_APART = 0x9E3779B1
"""Distance between the seeds of two replicas, larger than that between operations, whose seeds count up."""
_BY_FILTER: Mapping[str, str] = {
    "Conv2DBackpropInput": "Conv2DBackpropFilter",
    "Conv3DBackpropInputV2": "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropInput": "DepthwiseConv2dNativeBackpropFilter",
}
"""Gradient by a convolution's input -> gradient by its filter."""


def producers(op: Operation) -> Iterable[Operation]:
    """Yields the operations that ``op`` waits for: the sources of its inputs, and its control inputs."""
    yield from (tensor.op for tensor in op.inputs)
    yield from op.control_inputs


def data_producers(op: Operation) -> Iterable[Operation]:
    """Yields the sources of an operation's inputs."""
    return (tensor.op for tensor in op.inputs)


def upstream(
    targets: Iterable[Operation],
    stop: Callable[[Operation], bool] = lambda op: False,
    parents: Callable[[Operation], Iterable[Operation]] = producers,
) -> set[Operation]:
    """Finds every operation that ``targets`` depend on, and ``targets`` themselves.

    Args:
        targets: Operations at which the walk begins.
        stop: Function that returns True for an operation to leave out, with all that it waits for.
        parents: Function that gives the operations that one operation waits for.

    Returns:
        The operations.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     total = tf.compat.v1.placeholder(tf.float32, name="x") + 1.0
        >>> sorted(op.type for op in upstream([total.op], lambda op: op.type == "Placeholder"))
        ['AddV2', 'Const']
    """
    found: set[Operation] = set()
    waiting = list(targets)
    while waiting:
        op = waiting.pop()
        if op not in found and not stop(op):
            found.add(op)
            waiting.extend(parents(op))
    return found


def refused(op: Operation, what: str, **details: Any) -> NotSupportedError:
    """Returns the calling function's error about an operation, with the innermost line of the user's code that led to it, if any.

    Args:
        op: Operation of a graph.
        what: One sentence that says what happened.
        details: Keyword arguments of ``NotSupportedError``.
    """
    error = NotSupportedError(what, **details, address=address_of(sys._getframe(1)))
    lines = [f"{frame.filename}:{frame.lineno}" for frame in op.traceback if is_users(frame.filename)]
    error.asked_by = lines[-1] if lines else None
    return error


def is_source(op: Operation) -> bool:
    """Returns True for inputs of a fragment: variables' handles, placeholders and the batch."""
    return op.type in ("VarHandleOp", "Placeholder") or op.name.startswith(BATCH)


def is_copied(op: Operation) -> bool:
    """Returns True for operations of which each fragment has a copy: constants, and tables, identified by their shared name."""
    if is_source(op):
        return False
    return op.type == "Const" or (not op.inputs and bool(op.outputs) and all(out.dtype == tf.resource for out in op.outputs))


def variable_of(tensor: Tensor) -> Tensor | None:
    """Returns the handle of the variable whose value or handle a tensor is; else None."""
    op = tensor.op
    while op.type == "Identity" and not op.control_inputs:
        op = op.inputs[0].op
    if op.type == "ReadVariableOp" and not op.control_inputs:
        op = op.inputs[0].op
    return op.outputs[0] if op.type == "VarHandleOp" else None


@dataclasses.dataclass(frozen=True)
class Fragment:
    """A part of a graph, ready to be imported.

    Attributes:
        graph_def: Operations of the fragment.
        handles: Resource tensors of the variables that it reads or writes, as tensors of the original graph.
        inputs: Other tensors that come from outside, as tensors of the original graph.
        outputs: Tensors that its function returns, as tensors of the original graph.
        captured: Name of a further tensor that comes from outside -> eager tensor.
        of_any_length: Names of ``inputs`` whose first axis may have another length than in the original graph.
    """

    graph_def: Any
    handles: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    captured: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    of_any_length: Collection[str] = ()

    @classmethod
    def cut(
        cls,
        ops: Collection[Operation],
        outputs: Sequence[Tensor],
        fed: Collection[str] = (),
        first: Collection[Operation] = (),
    ) -> Fragment:
        """Cuts ``ops`` out of their graph.

        Args:
            ops: Operations that the fragment executes; constants and tables that they read are copied along.
            outputs: Tensors of the same graph; each is made by ``ops`` or passed through from outside.
            fed: Names of tensors that come from outside, whatever makes them in the graph.
            first: Operations among ``ops`` to run before all others; they wait for none of them.

        Returns:
            The fragment. Control inputs from outside are dropped, since the caller orders fragments.
        """
        inside = set(ops) | {t.op for op in ops for t in op.inputs if t.name not in fed and is_copied(t.op)}
        read = [tensor for op in inside for tensor in op.inputs]
        outside = {tensor.name: tensor for tensor in (*read, *outputs) if tensor.op not in inside or tensor.name in fed}
        handles = tuple(tensor for tensor in outside.values() if tensor.op.type == "VarHandleOp")
        inputs = tuple(tensor for tensor in outside.values() if tensor.op.type != "VarHandleOp")
        graph_def = _graph_def(inside, _without_use(inside, outputs), first)
        _hold_back(graph_def, _unfed_writes(inside), [tensor.op.name for tensor in inputs])
        return cls(graph_def, handles, inputs, tuple(outputs))

    def function(self, handles_like: Sequence[Tensor], compiled: bool = False) -> Callable[..., list[Tensor]]:
        """Imports the fragment into one ``tf.function``.

        Args:
            handles_like: Eager handle of a variable of the same shape and dtype, for each of ``handles``.
            compiled: True to have XLA compile it.

        Returns:
            ``call(handles, inputs) -> outputs``: lists of tensors in the order of the fragment's fields.
        """
        signature = [
            [tf.TensorSpec([], tf.resource) for _ in self.handles],
            [self._spec(tensor) for tensor in self.inputs],
        ]

        @tf.function(input_signature=signature, autograph=False, jit_compile=compiled or None)
        def call(handles: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
            for like, handle in zip(handles_like, handles, strict=True):
                handle_data_util.copy_handle_data(like, handle)
            outside = [tensor.name for tensor in self.handles + self.inputs]
            captured = {name: tf.convert_to_tensor(tensor) for name, tensor in self.captured.items()}
            return self._import(dict(zip(outside, [*handles, *inputs], strict=True)) | captured)

        # Each is traced once, but TensorFlow counts functions of the same code as one.
        call._omit_frequent_tracing_warning = True
        return call

    def _spec(self, tensor: Tensor) -> tf.TensorSpec:
        shape = [None, *tensor.shape[1:]] if tensor.name in self.of_any_length and tensor.shape.rank else tensor.shape
        return tf.TensorSpec(shape, tensor.dtype)

    @functools.cached_property
    def seeded(self) -> bool:
        """True if some of its random operations draw the same numbers in each run."""
        return any(map(is_seeded, all_nodes(self.graph_def)))

    def reseeded(self, number: int) -> Fragment:
        """Returns the fragment with other seeds, since TF1 built the model_fn again, with other seeds, for each replica.

        Functions get new names, too, since a process has only one function of each name.

        Args:
            number: Number of the replica; replica 0 keeps the script's own seeds.
        """
        graph_def = tf.compat.v1.GraphDef.FromString(self.graph_def.SerializeToString())
        own = [function.signature.name for function in graph_def.library.function]
        names = {name: f"{name}_replica_{number}" for name in own}
        for node in all_nodes(graph_def):
            if is_seeded(node):
                node.attr["seed2"].i += number * SEEDS_APART
            node.op = names.get(node.op, node.op)
            for called in called_functions(node):
                called.name = names.get(called.name, called.name)
        for function in graph_def.library.function:
            function.signature.name = names[function.signature.name]
            _make_known(function)
        for gradient in graph_def.library.gradient:
            gradient.function_name = names[gradient.function_name]
            gradient.gradient_func = names[gradient.gradient_func]
        return dataclasses.replace(self, graph_def=graph_def)

    def placed(self, devices: Mapping[str, str]) -> Fragment:
        """Returns the fragment with operations on devices; TensorFlow's choice remains for those without one.

        Args:
            devices: Name of an operation -> device, e.g., "/device:CPU:1".
        """
        if devices.keys().isdisjoint(node.name for node in self.graph_def.node):
            return self
        graph_def = tf.compat.v1.GraphDef.FromString(self.graph_def.SerializeToString())
        for node in graph_def.node:
            if node.name in devices:
                node.device = devices[node.name]
                node.attr.pop(
                    "_class", None
                )  # the device decides, and TensorFlow would refuse a colocation that contradicts it
        return dataclasses.replace(self, graph_def=graph_def)

    def _import(self, by_name: dict[str, Tensor]) -> list[Tensor]:
        used = {_tensor_name(name) for node in self.graph_def.node for name in node.input}
        awaited = {f"^{tensor.op.name}": by_name[tensor.name] for tensor in self.inputs}
        inner = [tensor.name for tensor in self.outputs if tensor.name not in by_name]
        imported = tf.graph_util.import_graph_def(
            self.graph_def,
            input_map={name: value for name, value in (by_name | awaited).items() if name in used},
            return_elements=inner,
            name="",
        )
        by_name.update(zip(inner, imported, strict=True))
        return [tf.identity(by_name[tensor.name]) for tensor in self.outputs]


def all_nodes(graph_def: Any) -> list[Any]:
    """Returns the nodes of a GraphDef and of its functions."""
    return [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]


def is_seeded(node: Any) -> bool:
    """Returns True for a random operation with a seed; without one, each kernel chooses its own."""
    return "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)


def _tensor_name(node_input: str) -> str:
    return node_input if ":" in node_input or node_input.startswith("^") else f"{node_input}:0"


def _without_use(ops: set[Operation], outputs: Sequence[Tensor]) -> set[Operation]:
    """Returns control flow whose results nothing uses, which only runs for the effects of its bodies."""
    ends = [tensor.op for tensor in outputs] + [op for op in ops if op.op_def.is_stateful and op.type not in _CONTROL_FLOW]
    used = upstream(ends, lambda op: op not in ops)
    return {op for op in ops - used if op.type in _CONTROL_FLOW}


def _graph_def(ops: set[Operation], without_use: Collection[Operation], first: Collection[Operation]) -> Any:
    names = {op.name for op in ops}
    graph_def = tf.compat.v1.GraphDef()
    for op in sorted(ops, key=lambda op: (op not in first, op._id)):  # the function keeps this order where it matters
        node = graph_def.node.add()
        node.CopyFrom(op.node_def)
        node.device = ""  # the strategy places it
        if node.op == "HashTableV2":  # else a loaded SavedModel has a table of its own in each function
            node.attr["use_node_name_sharing"].b = True
        if "shared_name" in node.attr and not node.attr["shared_name"].s:  # else each function has one of its own
            node.attr["shared_name"].s = f"{op.graph._graph_key}{op.name}".encode()
        waited_for = set[str]() if holds_up(op) else names
        node.input[:] = [name for name in node.input if not name.startswith("^") or name[1:] in waited_for]
        if "_class" in node.attr:  # colocation with an operation outside of the fragment cannot be resolved
            places = node.attr["_class"].list.s
            places[:] = [place for place in places if place.decode().removeprefix("loc:@") in names]
            if not places:
                del node.attr["_class"]
    _add_library(graph_def, ops)
    unused = {op.name for op in without_use}
    _keep_effects(graph_def.library, [node for node in graph_def.node if node.name in unused])
    return graph_def


def _keep_effects(library: Any, nodes: Iterable[Any]) -> None:
    """Makes each stateful operation in the bodies of control flow run; TensorFlow would prune those that no result of a body needs."""
    functions = {function.signature.name: function for function in library.function}
    for node in nodes:
        for called in called_functions(node):
            body = library.function.add()
            body.CopyFrom(functions[called.name])
            body.signature.name = called.name = f"{called.name}_with_effects"
            for inner in body.node_def:
                if op_def_registry.get(inner.op) is None or op_def_registry.get(inner.op).is_stateful:
                    body.control_ret[inner.name] = inner.name
            body.signature.control_output[:] = sorted(body.control_ret)
            _keep_effects(library, [inner for inner in body.node_def if inner.op in _CONTROL_FLOW])
            _make_known(body)


def _make_known(function: Any) -> None:
    if not context.context().has_function(function.signature.name):  # TensorFlow knows only the script's own functions
        context.context().add_function_def(function)


def _unfed_writes(ops: set[Operation]) -> list[str]:
    """Returns the names of the writes to variables that need nothing from outside but handles, as ``m.assign(0.9 * m)`` of a sparse Adam."""
    fed: set[Operation] = set()
    for op in sorted(ops, key=lambda op: op._id):
        given = any(
            tensor.op not in ops and tensor.op.type != "VarHandleOp" for tensor in op.inputs
        )  # control inputs from outside are dropped
        if given or any(producer in fed for producer in producers(op)):
            fed.add(op)
    return [op.name for op in ops - fed if not op.outputs and any(tensor.op.type == "VarHandleOp" for tensor in op.inputs)]


def _hold_back(graph_def: Any, names: Collection[str], inputs: Collection[str]) -> None:
    """Makes nodes wait for all inputs: without one, as after the last batch, TensorFlow would run them, since it inlines the function."""
    for node in graph_def.node:
        if node.name in names:
            node.input.extend(f"^{name}" for name in dict.fromkeys(inputs))


def holds_up(op: Operation) -> bool:
    """Returns True if ``op`` only forwards a convolution's input gradient and, by a gate, waits for its filter gradient.

    With ``GATE_OP`` the gradients of an operation by all of its inputs wait for each other, and the layers below wait for all of them.
    The gradient by a convolution's filter takes as long as that by its input, but only the latter is needed below. Without this gate
    another core computes the former meanwhile.

    All other gates stay. Without a gate TensorFlow fuses operations and sums in another order. In particular, oneDNN would compute the
    gradient by a convolution's bias together with that by its filter.

    Args:
        op: Operation of a graph; without its control inputs it gives the same.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default() as graph:
        ...     image, filters = tf.ones([1, 4, 4, 2]), tf.ones([3, 3, 2, 1])
        ...     convolved = tf.nn.conv2d(image, filters, 1, "VALID")
        ...     _ = tf.compat.v1.gradients(convolved, [image, filters], gate_gradients=True)
        ...     [op.inputs[0].op.type for op in graph.get_operations() if holds_up(op)]
        ['Conv2DBackpropInput']
    """
    if op.type != "Identity" or len(op.control_inputs) != 1:
        return False
    source, gate = op.inputs[0].op.type, op.control_inputs[0]
    waited_for = {one.type for one in gate.control_inputs} if gate.type == "NoOp" else set()
    return source in _BY_FILTER and waited_for == {source, _BY_FILTER[source]}


def _add_library(graph_def: Any, ops: set[Operation]) -> None:
    if not ops:
        return
    graph = next(iter(ops)).graph.as_graph_def(add_shapes=False)
    functions = {function.signature.name: function for function in graph.library.function}
    gradients = {gradient.function_name: gradient for gradient in graph.library.gradient}
    graph_def.versions.CopyFrom(graph.versions)
    names = sorted(reached_functions(graph_def.node, functions, gradients))
    graph_def.library.function.extend(functions[name] for name in names)
    graph_def.library.gradient.extend(gradients[name] for name in names if name in gradients)
