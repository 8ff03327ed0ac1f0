"""The value of each operation of a training step's forward pass: a few numbers that tell equal elements in any shape or order."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.parity.evidence import ForwardValue
from estimator_bridge.parity.recording.trace import FORWARD_FILE

_MOST = 5000  # tensors of a forward pass
LARGEST = 30_000_000  # elements of a tensor that is looked at
OF_SHAPES = frozenset({"Shape", "ShapeN", "Size", "Rank", "OnesLike", "ZerosLike"})
_IN_LOOPS = frozenset({"Enter", "RefEnter", "NextIteration", "LoopCond", "Switch", "RefSwitch"})
_READS_ARRAYS = frozenset({"TensorArrayGatherV3", "TensorArrayReadV3", "TensorArrayConcatV3"})
PASSED_ON = frozenset(
    {"Identity", "IdentityN", "StopGradient", "PreventGradient", "CheckNumerics", "EnsureShape", "ReadVariableOp"}
)
_VARIABLES = frozenset({"VariableV2", "Variable", "VarHandleOp"})
RESHAPES = frozenset({"Reshape", "ExpandDims", "Squeeze"})  # of a variable, they show its value after the update, too
_BODIES = ("body", "cond", "f", "then_branch", "else_branch")  # attributes that name a function
SETTINGS = ("padding", "strides", "dilations", "ksize", "data_format", "transpose_a", "transpose_b", "epsilon", "alpha")
SHOWN = 16  # elements of a constant
_PADDING = 1e6  # largest size of an element that no mask makes


def values_of(array: Any) -> tuple[float, ...]:
    """Returns numbers of an array: its size, sum, sum of sizes, sum of squares, least and largest element, and a sum that order changes.

    Args:
        array: Numbers of any shape.

    Example:
        >>> values_of([[1.0, 2.0]])[:6]
        (2.0, 3.0, 3.0, 5.0, 1.0, 2.0)
    """
    flat = np.asarray(array, np.float64).ravel()
    if not flat.size:
        return (0.0,) * 7
    flat = np.where(np.isfinite(flat), flat, 0.0)  # as of a branch that tf.where leaves out
    is_padding = np.abs(flat) > _PADDING
    if not is_padding.all():  # else a mask of attention hides what the other elements are
        flat = np.where(is_padding, 0.0, flat)
    weights = np.cos(np.arange(flat.size))
    sums = (flat.sum(), np.abs(flat).sum(), np.square(flat).sum(), flat.min(), flat.max(), float(flat @ weights))
    return (float(flat.size), *map(float, sums))


def write_values(folder: Path, values: Sequence[ForwardValue]) -> None:
    """Writes values into a side's folder of values, the loss last."""
    (folder / FORWARD_FILE).write_text(json.dumps([vars(value) for value in values]), encoding="utf-8")


class ForwardPass:
    """The tensors between batch, variables and loss of a graph.

    Args:
        loss: Loss; a tensor of a graph.
        operations: Operations of the forward pass; others are not followed.
        batch: Tensors of the batch, and their names for the user.
    """

    def __init__(self, loss: Any, operations: Iterable[Any], batch: Iterable[tuple[Any, str]] = ()) -> None:
        self._batch = {tensor.ref(): name for tensor, name in batch if tf.is_tensor(tensor)}
        self._graph = loss.graph
        self._allowed = set(operations)
        self._found: list[ForwardValue] = []
        self._places: dict[Any, int | None] = {}  # tensor -> its place in what is found; None while its inputs are visited
        self._tensors: dict[int, Any] = {}
        self._numbers: dict[int, tuple[float, ...]] = {}
        self._visit(loss)

    def look(self) -> list[Any]:
        """Adds operations that take the numbers of each tensor when they are executed; returns their outputs."""

        def take(place: Any, value: Any) -> Any:
            self._numbers[int(place)] = values_of(value)
            return np.float64(0)

        return [tf.numpy_function(take, [place, tensor], tf.float64, stateful=True) for place, tensor in self._tensors.items()]

    def write(self, folder: Path) -> None:
        """Writes the numbers into a side's folder of values, if they were taken."""
        if self._numbers:
            taken = (self._numbers.get(place, ()) for place in range(len(self._found)))
            write_values(
                folder, [dataclasses.replace(value, numbers=numbers) for value, numbers in zip(self._found, taken, strict=True)]
            )

    def _visit(self, loss: Any) -> None:
        """Adds the tensors that the loss depends on, each after its inputs."""
        stack = [loss]
        while stack and len(self._found) < _MOST:
            tensor = stack[-1]
            sources, inner = self._sources(tensor)
            waiting = [one for one in sources if one.ref() not in self._places]
            if waiting and tensor.ref() not in self._places:
                self._places.setdefault(tensor.ref(), None)  # broken if a loop leads back to it
                stack += waiting
                continue
            stack.pop()
            if self._places.get(tensor.ref()) is None:
                self._places[tensor.ref()] = self._add(tensor, sources, inner)
        if stack:  # too large to look at
            self._found, self._tensors = [], {}

    def _sources(self, tensor: Any) -> tuple[list[Any], list[Any]]:
        """Returns the tensors that a tensor is computed from and that can be looked at, and the operations of loops in between."""
        sources: dict[Any, Any] = {}
        inner: dict[Any, None] = {}
        waiting = [*tensor.op.inputs]
        while waiting:
            one = waiting.pop(0)
            if one.op in inner or one.op not in self._allowed:
                continue
            if _can_be_looked_at(one, self._graph) or _is_variable(one):
                sources[one.ref()] = one
            else:
                inner[one.op] = None
                waiting += one.op.inputs
        return [*sources.values()], [*inner]

    def _add(self, tensor: Any, sources: list[Any], inner: list[Any]) -> int:
        op, is_variable = tensor.op, _is_variable(tensor)
        places = [place for one in sources if (place := self._places[one.ref()]) is not None]
        read = [self._found[place] for place in places]
        if len(places) == 1 and (op.type in PASSED_ON or (op.type in RESHAPES and read[0].is_variable)):
            return places[0]
        is_input = op.type == "Placeholder" or (op.op_def.is_stateful and "Random" not in op.type)
        value = ForwardValue(
            self._batch.get(tensor.ref(), op.name),
            op.type,
            tuple(places),
            tuple(tensor.shape.as_list()) if tensor.shape.rank is not None else None,
            is_variable=is_variable,
            is_batch=tensor.ref() in self._batch or op.type in {"IteratorGetNext", "Placeholder"},
            is_data=is_variable or is_input or (op.type not in OF_SHAPES and any(one.is_data for one in read)),
            settings=_settings(op),
            body=dict(self._between(inner) + self._called(op)),
        )
        self._found.append(value)
        if value.is_data and not is_variable:
            self._tensors[len(self._found) - 1] = tensor
        return len(self._found) - 1

    def _between(self, inner: list[Any]) -> Counter[str]:
        """Returns the operations of the loops that lie between a tensor and its inputs."""
        in_loops = Counter(_spelled_node(op.node_def) for op in inner if not self._graph.is_fetchable(op))
        return sum((self._called(op) for op in inner), in_loops)

    def _called(self, op: Any) -> Counter[str]:
        """Returns the operations of the functions that an operation calls, as of a loop's body."""
        return _count([op.node_def], self._functions, set()) - Counter([op.type])

    @functools.cached_property
    def _functions(self) -> dict[str, Any]:
        return {function.signature.name: function.node_def for function in self._graph.as_graph_def().library.function}


def _is_variable(tensor: Any) -> bool:
    return tensor.op.type in _VARIABLES or (tensor.op.type == "Placeholder" and tensor.dtype == tf.resource)


def _can_be_looked_at(tensor: Any, graph: Any) -> bool:
    op, kind = tensor.op, tensor.dtype.base_dtype
    is_number = kind.is_floating or kind.is_integer or kind.is_bool
    is_inner = op.type in _IN_LOOPS or any(one.op.type in _IN_LOOPS for one in op.inputs) or not graph.is_fetchable(op)
    stands_for_array = op.type.startswith("TensorArray") and op.type not in _READS_ARRAYS
    is_counter = op.type == "Exit" and not tensor.shape.rank
    return (
        is_number and not is_counter and not stands_for_array and not is_inner and (tensor.shape.num_elements() or 0) <= LARGEST
    )


def _settings(op: Any) -> dict[str, str]:
    """Returns the attributes and the constant inputs of an operation, as text."""
    given = op.node_def.attr
    settings = {name: spelled(op.get_attr(name)) for name in SETTINGS if name in given}
    for number, tensor in enumerate(op.inputs):
        value = tf.get_static_value(tensor)
        if value is not None and np.size(value) <= SHOWN and np.asarray(value).dtype.kind in "fiub":
            settings[f"input {number}"] = str(np.asarray(value).tolist())
    return settings


def spelled(attribute: Any) -> str:
    """Returns the value of an attribute as text, the same for graphs and for operations that run eagerly."""
    return attribute.decode() if isinstance(attribute, bytes) else str(attribute)


def _spelled_node(node: Any) -> str:
    value = tf.make_ndarray(node.attr["value"].tensor) if node.op == "Const" else None
    return f"constant {float(value):g}" if value is not None and not value.ndim and value.dtype.kind == "f" else node.op


def _count(nodes: Iterable[Any], functions: dict[str, Any], above: Collection[str]) -> Counter[str]:
    """Counts operations, and those of the functions that they call."""
    counted: Counter[str] = Counter()
    for node in nodes:
        counted[_spelled_node(node)] += 1
        for attribute in _BODIES:
            called = node.attr[attribute].func.name if attribute in node.attr else ""
            if called in functions and called not in above:
                counted += _count(functions[called], functions, {*above, called})
    return counted
