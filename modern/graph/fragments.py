"""Cuts a set of operations out of a TF1 graph and makes it a function of variable handles and tensors.

An unpruned graph, imported into a ``tf.function``, would run its initialisers at every step: automatic control dependencies
execute every stateful operation they find. So a fragment holds only the operations that its caller named, and each function
imports its fragment once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.ops import handle_data_util

from estimator_bridge.modern.graph.gradient_gates import holds_up

Operation = Any  # tf.Operation: TensorFlow ships no types
Tensor = Any
BATCH = "estimator_bridge/batch"  # no name that a variable of a script might have
"""The operations between an input pipeline and its model."""
_CONTROL_FLOW = frozenset({"Case", "If", "While"})


def producers(op: Operation) -> Iterable[Operation]:
    """The operations that ``op`` waits for: the sources of its inputs and its control inputs."""
    yield from (tensor.op for tensor in op.inputs)
    yield from op.control_inputs


def upstream(
    targets: Iterable[Operation],
    stop: Callable[[Operation], bool],
    parents: Callable[[Operation], Iterable[Operation]] = producers,
) -> set[Operation]:
    """Every operation that ``targets`` depend on, themselves included.

    Args:
        targets: where the walk begins.
        stop: operations for which it answers True are left out, and nothing behind them is visited.
        parents: the operations that one operation waits for.

    Returns:
        The operations reached.

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


_SEEDS_APART = 0x9E3779B1
"""From the seed of one replica to that of the next: further than seeds of operations, which count up."""


def is_source(op: Operation) -> bool:
    """True for what a fragment is given from outside: variables' handles, placeholders and the batch."""
    return op.type in ("VarHandleOp", "Placeholder") or op.name.startswith(BATCH)


def is_copied(op: Operation) -> bool:
    """True for what every fragment that uses it has a copy of: constants, and tables, which their shared name identifies."""
    if is_source(op):
        return False
    return op.type == "Const" or (not op.inputs and bool(op.outputs) and all(out.dtype == tf.resource for out in op.outputs))


@dataclasses.dataclass(frozen=True)
class Fragment:
    """A part of a graph, ready to be imported.

    ``handles`` are the resource tensors of the variables it reads or writes, ``inputs`` the other tensors that come from outside,
    ``outputs`` what its function returns, all as tensors of the graph it was cut from.
    """

    graph_def: Any
    handles: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @classmethod
    def cut(cls, ops: Collection[Operation], outputs: Sequence[Tensor]) -> Fragment:
        """Cuts ``ops`` out of their graph.

        Args:
            ops: what the fragment executes; constants and tables that it reads are copied along.
            outputs: tensors of the same graph; each is produced by ``ops`` or passed through from outside.

        Returns:
            The fragment. Control inputs from outside are dropped: the caller orders fragments.
        """
        inside = set(ops) | {tensor.op for op in ops for tensor in op.inputs if is_copied(tensor.op)}
        outside = {tensor.name: tensor for op in inside for tensor in op.inputs if tensor.op not in inside}
        outside |= {tensor.name: tensor for tensor in outputs if tensor.op not in inside}
        handles = tuple(tensor for tensor in outside.values() if tensor.op.type == "VarHandleOp")
        inputs = tuple(tensor for tensor in outside.values() if tensor.op.type != "VarHandleOp")
        return cls(_graph_def(inside, _without_use(inside, outputs)), handles, inputs, tuple(outputs))

    def function(self, handles_like: Sequence[Tensor], compiled: bool = False) -> Callable[..., list[Tensor]]:
        """Imports the fragment into one ``tf.function``.

        Args:
            handles_like: for each of ``handles``, an eager handle of a variable of the same shape and dtype.
            compiled: XLA compiles it.

        Returns:
            ``call(handles, inputs) -> outputs``: lists of tensors in the order of the fragment's fields.
        """
        signature = [
            [tf.TensorSpec([], tf.resource) for _ in self.handles],
            [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in self.inputs],
        ]

        @tf.function(input_signature=signature, autograph=False, jit_compile=compiled or None)
        def call(handles: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
            for like, handle in zip(handles_like, handles, strict=True):
                handle_data_util.copy_handle_data(like, handle)
            outside = [tensor.name for tensor in self.handles + self.inputs]
            return self._import(dict(zip(outside, [*handles, *inputs], strict=True)))

        call._omit_frequent_tracing_warning = True  # each is traced once: TensorFlow counts all as one, whose code is the same
        return call

    @functools.cached_property
    def seeded(self) -> bool:
        """Whether its random operations draw the same in each run."""
        return any(map(_seeded, all_nodes(self.graph_def)))

    def reseeded(self, number: int) -> Fragment:
        """The fragment for a replica that draws other random numbers: TF1 built a model_fn anew, with other seeds, for each.

        Functions get names of their own, too: a process has one function of a name.

        Args:
            number: of the replica; that of the script's own seeds is 0.
        """
        graph_def = tf.compat.v1.GraphDef.FromString(self.graph_def.SerializeToString())
        names = {
            function.signature.name: f"{function.signature.name}_replica_{number}" for function in graph_def.library.function
        }
        for node in all_nodes(graph_def):
            if _seeded(node):
                node.attr["seed2"].i += number * _SEEDS_APART
            node.op = names.get(node.op, node.op)
            for called in called_functions(node):
                called.name = names.get(called.name, called.name)
        for function in graph_def.library.function:
            function.signature.name = names[function.signature.name]
            if not context.context().has_function(function.signature.name):  # TensorFlow knows only the script's own functions
                context.context().add_function_def(function)
        for gradient in graph_def.library.gradient:
            gradient.function_name, gradient.gradient_func = (
                names[name] for name in (gradient.function_name, gradient.gradient_func)
            )
        return dataclasses.replace(self, graph_def=graph_def)

    def _import(self, by_name: dict[str, Tensor]) -> list[Tensor]:
        used = {_tensor_name(name) for node in self.graph_def.node for name in node.input}
        inner = [tensor.name for tensor in self.outputs if tensor.name not in by_name]
        imported = tf.graph_util.import_graph_def(
            self.graph_def,
            input_map={name: value for name, value in by_name.items() if name in used},
            return_elements=inner,
            name="",
        )
        by_name.update(zip(inner, imported, strict=True))
        return [tf.identity(by_name[tensor.name]) for tensor in self.outputs]


def all_nodes(graph_def: Any) -> list[Any]:
    """Returns the nodes of a GraphDef and of its functions."""
    return [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]


def called_functions(node: Any) -> list[Any]:
    """Returns the NameAttrList of each function that a NodeDef has as an attribute."""
    values = node.attr.values()
    return [called for value in values for called in ([value.func] if value.HasField("func") else value.list.func)]


def _seeded(node: Any) -> bool:
    """A random operation that draws the same in each run: without a seed, each kernel finds one for itself."""
    return "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)


def _tensor_name(node_input: str) -> str:
    return node_input if ":" in node_input or node_input.startswith("^") else f"{node_input}:0"


def _without_use(ops: set[Operation], outputs: Sequence[Tensor]) -> set[Operation]:
    """Control flow whose results nothing uses: what its bodies do is all there is to it."""
    ends = [tensor.op for tensor in outputs] + [op for op in ops if op.op_def.is_stateful and op.type not in _CONTROL_FLOW]
    used = upstream(ends, lambda op: op not in ops)
    return {op for op in ops - used if op.type in _CONTROL_FLOW}


def _graph_def(ops: set[Operation], without_use: Collection[Operation]) -> Any:
    names = {op.name for op in ops}
    graph_def = tf.compat.v1.GraphDef()
    for op in sorted(ops, key=lambda op: op._id):
        node = graph_def.node.add()
        node.CopyFrom(op.node_def)
        node.device = ""  # the strategy places it
        if op in without_use:  # TensorFlow would inline the bodies, and then leave out what nothing uses
            node.attr.pop("_lower_using_switch_merge", None)
        if node.op == "HashTableV2":  # without it, whoever loads a SavedModel gives each function a table of its own
            node.attr["use_node_name_sharing"].b = True
        _keep(node.input, functools.partial(_is_input, set() if holds_up(op) else names))
        if "_class" in node.attr:  # colocation with something that stayed behind cannot be resolved
            _keep(node.attr["_class"].list.s, lambda name: name.decode().removeprefix("loc:@") in names)
            if not node.attr["_class"].list.s:
                del node.attr["_class"]
    _add_library(graph_def, ops)
    return graph_def


def _is_input(waited_for: Collection[str], name: str) -> bool:
    return not name.startswith("^") or name[1:] in waited_for


def _keep(values: Any, wanted: Callable[[Any], bool]) -> None:
    kept = [value for value in values if wanted(value)]
    del values[:]
    values.extend(kept)


def _add_library(graph_def: Any, ops: set[Operation]) -> None:
    if not ops:
        return
    graph = next(iter(ops)).graph.as_graph_def(add_shapes=False)
    functions = {function.signature.name: function for function in graph.library.function}
    gradients = {gradient.function_name: gradient for gradient in graph.library.gradient}
    graph_def.versions.CopyFrom(graph.versions)
    waiting = [name for node in graph_def.node for name in _called(node, functions)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        graph_def.library.function.add().CopyFrom(functions[name])
        if name in gradients:
            graph_def.library.gradient.add().CopyFrom(gradients[name])
            waiting.append(gradients[name].gradient_func)
        waiting.extend(other for node in functions[name].node_def for other in _called(node, functions))


def _called(node: Any, functions: Collection[str]) -> list[str]:
    by_name = [node.op] if node.op in functions else []  # as TF1's Defun makes its calls
    return [*by_name, *(called.name for called in called_functions(node))]
