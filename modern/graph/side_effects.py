"""Side effects of operations: none, a printed line, an advanced random state, or changed state."""

import enum
import functools
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from estimator_bridge.modern.graph.fragments import Operation, is_seeded
from estimator_bridge.runtime.dataset_sharding import reached_functions

READS = frozenset(
    {
        "LookupTableExportV2",
        "LookupTableFindV2",
        "LookupTableSizeV2",
        "Placeholder",
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "VarIsInitializedOp",
        "VariableShape",
    }
)
_OUTWARD = frozenset({"Assert", "EagerPyFunc", "Print", "PrintV2", "PyFunc"})
_RANDOM = ("Random", "TruncatedNormal", "CandidateSampler", "Multinomial")
# The effects of these are those of their bodies.
_CALLS = frozenset({"Case", "If", "PartitionedCall", "StatefulPartitionedCall", "While"})
_RESOURCE = tf.resource.as_datatype_enum


class Effect(enum.IntEnum):
    """The strongest effect of an operation.

    Attributes:
        NONE: The operation may run any number of times.
        OUTWARD: The operation prints, checks or runs Python.
        DRAW: The operation draws random numbers, and its kernel keeps the state of their generator.
        CHANGE: The operation may change a variable, a table, a queue, an iterator or a file.
    """

    NONE = 0
    OUTWARD = 1
    DRAW = 2
    CHANGE = 3


class Effects:
    """The effects of a graph's operations; an operation that is not known to be harmless counts as a change.

    Args:
        graph: ``tf.Graph`` of the operations.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default() as graph:
        ...     count = tf.compat.v1.get_variable("count", shape=[], use_resource=True)
        ...     write = count.assign_add(1.0, read_value=False)
        ...     ops = [count.read_value().op, tf.random.uniform([]).op, write]
        >>> [Effects(graph).of(op).name for op in ops]
        ['NONE', 'DRAW', 'CHANGE']
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def of(self, op: Operation) -> Effect:
        """Returns the effect of one operation and of the functions that it calls."""
        return max(map(_effect, self.kinds(op)))

    def draws(self, op: Operation) -> bool:
        """Returns True if an operation, or one in the functions that it calls, draws random numbers from the state of a kernel."""
        return any(_effect(kind) is Effect.DRAW for kind in self.kinds(op))

    def kinds(self, op: Operation) -> set[str]:
        """Returns the types of an operation and of all operations in the functions that it calls."""
        if not _takes_functions(op.type):
            return {op.type}  # without its NodeDef, which is slow to get
        nodes = self._nodes(op)
        return {node.op for node in nodes} - self._library.keys()  # the type of a call of TF1's Defun is the function's name

    def is_seeded(self, op: Operation) -> bool:
        """Returns True if an operation, or one in the functions that it calls, draws random numbers from a seed."""
        return any(map(is_seeded, self._nodes(op)))

    def _nodes(self, op: Operation) -> list[Any]:
        called = reached_functions([op.node_def], self._library)
        return [op.node_def, *(inner for name in called for inner in self._library[name].node_def)]

    @functools.cached_property
    def _library(self) -> Mapping[str, Any]:
        return {function.signature.name: function for function in self._graph.as_graph_def().library.function}


@functools.cache
def _effect(kind: str) -> Effect:
    definition = op_def_registry.get(kind)
    if kind in READS | _CALLS or _makes_handle(definition):
        return Effect.NONE
    if kind in _OUTWARD:
        return Effect.OUTWARD
    if definition.is_stateful and any(word in kind for word in _RANDOM):
        return Effect.DRAW
    takes_state = any(argument.type == _RESOURCE or argument.is_ref for argument in definition.input_arg)
    return Effect.CHANGE if definition.is_stateful or takes_state else Effect.NONE


@functools.cache
def _takes_functions(kind: str) -> bool:
    definition = op_def_registry.get(kind)
    return definition is None or any(attribute.type in ("func", "list(func)") for attribute in definition.attr)


def _makes_handle(definition: Any) -> bool:
    made = [argument.type == _RESOURCE for argument in definition.output_arg]
    return not definition.input_arg and bool(made) and all(made)
