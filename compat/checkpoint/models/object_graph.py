"""What an object graph says of a model and its optimizer: variables, slots and hyperparameters, found by its edges."""

from __future__ import annotations

import dataclasses
import functools
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Literal

from estimator_bridge.compat.checkpoint.errors import NotFoundError, naming_file
from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.format.trackable import Node
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH, SAVE_COUNTER
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.index import Index

Flavour = Literal["legacy", "tf_keras", "keras3"]  # tf_keras.optimizers.legacy; tf_keras' newer ones; those of Keras 3
_NO_SLOTS = {"_variables", "_trainable_variables", "_index_dict", "_trainable_variables_indices"}
_KERAS_ALONE = "keras_api"  # in a SavedModel: metrics, and a second way to what the model has anyway
_COUNTER = "save_counter"


@dataclasses.dataclass(frozen=True)
class ObjectVariable:
    """A variable of the graph.

    Attributes:
        key: its name in the checkpoint.
        full_name: the name that its variable had.
        entry: shape and dtype, and where the value was.
    """

    key: str
    full_name: str
    entry: Entry


@dataclasses.dataclass(frozen=True)
class ObjectSlot:
    """A slot variable.

    Attributes:
        slot: "m" for ``tf_keras.optimizers.legacy``, "momentums" for the others.
        variable: key of the model's variable; "" where the graph does not tell.
        stored: the slot's own key, name and shape.
    """

    slot: str
    variable: str
    stored: ObjectVariable


@dataclasses.dataclass(frozen=True)
class ObjectModel:
    """A checkpoint's object graph, sorted.

    Attributes:
        index: of the checkpoint it came from.
        graph: the message, as it was.
        variables: of the model, in the order of the graph.
        slots: of its optimizers.
        flavour: of the optimizer; None without one.
        iterations: keys of the numbers of updates, one an optimizer.
        others: hyperparameters, metrics, ``save_counter``: what a TF1 checkpoint has no name for.
        copies: key of what is kept a second time -> key of the variable.
    """

    index: Index
    graph: bytes
    variables: tuple[ObjectVariable, ...]
    slots: tuple[ObjectSlot, ...]
    flavour: Flavour | None
    iterations: tuple[str, ...]
    others: Mapping[str, ObjectVariable]
    copies: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_graph(index: Index) -> bytes:
    """The message that is a checkpoint's object graph.

    Args:
        index: of the checkpoint.

    Raises:
        NotFoundError: when it has none.
        CorruptError: when it is damaged.
    """
    if OBJECT_GRAPH not in index.entries:
        raise NotFoundError(
            "The checkpoint has no object graph.",
            expected="one that tf.train.Checkpoint or Keras wrote, or a SavedModel",
            received=str(index.prefix),
        )
    return b"".join(values.read_strings(index, index.entries[OBJECT_GRAPH], OBJECT_GRAPH))


def decode_graph(index: Index, graph: bytes) -> list[Node]:
    """Returns the nodes of a checkpoint's object graph.

    Raises:
        CorruptError: The graph is damaged; the message names the checkpoint.
    """
    with naming_file(index.prefix):
        return trackable.decode(graph)


def read_object_model(index: Index) -> ObjectModel:
    """Reads a checkpoint's object graph.

    Args:
        index: of the checkpoint.

    Returns:
        What it says.

    Raises:
        NotFoundError: when it has none.
        CorruptError: when it cannot be read, or names values that are not there.
    """
    graph = read_graph(index)
    return _Sorter(index, graph, decode_graph(index, graph)).model()


def read_saved_model(index: Index) -> ObjectModel:
    """Reads a SavedModel's object graph as ``tf.train.Checkpoint(model=model, optimizer=model.optimizer)`` would have saved it.

    Args:
        index: of the SavedModel's variables. The counter that every such checkpoint has is not among them.

    Returns:
        What it says.

    Raises:
        NotFoundError: when it has none, as one of TF1 has not.
        CorruptError: as for ``read_object_model``.
    """
    nodes = decode_graph(index, read_graph(index))
    nodes[0].children.pop(_KERAS_ALONE, None)
    root, counter = Node({"model": 0, _COUNTER: len(nodes) + 1}), trackable.variable(_COUNTER, SAVE_COUNTER)
    root.children |= {name: child for name, child in nodes[0].children.items() if name == "optimizer"}
    nodes = trackable.reachable([*nodes, root, counter], len(nodes))
    return _Sorter(index, trackable.encode(nodes), nodes).model()


class _Sorter:
    def __init__(self, index: Index, graph: bytes, nodes: list[Node]) -> None:
        self._index, self._graph, self._nodes = index, graph, nodes
        self._order = list(_breadth_first(self._nodes))
        self._optimizers = [number for number in self._order if _is_optimizer(self._nodes[number])]

    def model(self) -> ObjectModel:
        slots = [slot for number in self._optimizers for slot in self._slots_of(self._nodes[number])]
        others, iterations = self._hyperparameters()
        copies = {key: first for number in self._order for key, first in self._copies(self._nodes[number])}
        taken = {slot.stored.key for slot in slots}.union(others, iterations, copies)
        variables: dict[str, ObjectVariable] = {}
        for number in self._order:
            variable = self._variable(number)
            if variable and variable.key not in taken:
                variables[variable.key] = variable
        for name in (_COUNTER, _KERAS_ALONE):
            for number in _breadth_first(self._nodes, self._nodes[0].children.get(name)):
                variable = self._variable(number)
                if variable and (name == _COUNTER or variable.key.startswith(f"{_KERAS_ALONE}/")):
                    others[variable.key] = variables.pop(variable.key, variable)
        return ObjectModel(
            self._index, self._graph, tuple(variables.values()), tuple(slots), self._flavour(), iterations, others, copies
        )

    def _copies(self, node: Node) -> Iterator[tuple[str, str]]:
        """Keras 3's export saves its variables, and TensorFlow's in them, each under an edge and with bytes of its own."""
        if not {"variables", "_all_variables"} <= node.children.keys():
            return
        firsts: dict[tuple[object, ...], list[str]] = {}
        for variable in self._listed(node, "variables").values():
            firsts.setdefault(_contents(variable), []).append(variable.key)
        for copy in self._listed(node, "_all_variables").values():
            same = firsts.get(_contents(copy), [])
            if len(same) == 1 and copy.key not in same:
                yield copy.key, same[0]

    def _flavour(self) -> Flavour | None:
        if not self._optimizers:
            return None
        children = self._nodes[self._optimizers[0]].children
        return "legacy" if "iter" in children else "keras3" if "_trainable_variables" in children else "tf_keras"

    def _variable(self, number: int) -> ObjectVariable | None:
        value = self._nodes[number].value()
        if value is None or value.key not in self._index.entries:
            return None
        return ObjectVariable(value.key, value.full_name, self._index.entries[value.key])

    def _slots_of(self, optimizer: Node) -> Iterator[ObjectSlot]:
        for reference in optimizer.slots:
            variable, stored = self._variable(reference.variable), self._variable(reference.node)
            if variable and stored:
                yield ObjectSlot(reference.slot, variable.key, stored)
        trained = self._listed(optimizer, "_trainable_variables")
        for name, child in optimizer.children.items():
            members = [] if name in _NO_SLOTS else self._members(child)
            for position, stored in members:
                variable = trained.get(position) or self._of_slot(stored)
                yield ObjectSlot(name.lstrip("_"), variable.key if variable else "", stored)

    def _of_slot(self, slot: ObjectVariable) -> ObjectVariable | None:
        """tf_keras calls a slot ``m/dense/kernel`` or ``Adam/m/dense/kernel``; None where several variables have that name."""
        name = slot.full_name
        for _ in range(2):
            name = name.partition("/")[2]
            same = [variable for variable in self._by_name.get(name, ()) if variable.entry.shape == slot.entry.shape]
            if same:
                return same[0] if len(same) == 1 else None
        return None

    @functools.cached_property
    def _by_name(self) -> dict[str, list[ObjectVariable]]:
        found = {variable.key: variable for number in self._order if (variable := self._variable(number))}
        by_name: dict[str, list[ObjectVariable]] = {}
        for variable in found.values():
            by_name.setdefault(variable.full_name, []).append(variable)
        return by_name

    def _listed(self, node: Node, name: str) -> dict[int, ObjectVariable]:
        return dict(self._members(node.children[name])) if name in node.children else {}

    def _members(self, number: int) -> Iterator[tuple[int, ObjectVariable]]:
        """Position and variable of each member of a list."""
        for name, child in self._nodes[number].children.items():
            variable = self._variable(child)
            if name.isdecimal() and variable:
                yield int(name), variable

    def _hyperparameters(self) -> tuple[dict[str, ObjectVariable], tuple[str, ...]]:
        others: dict[str, ObjectVariable] = {}
        iterations: dict[str, None] = {}  # in order, and each once: a wrapper has that of the optimizer in it
        for number in self._optimizers:
            for name, child in self._nodes[number].children.items():
                variable = self._variable(child)
                if variable and name in {"iter", "_iterations"}:
                    iterations[variable.key] = None
                elif variable:
                    others[variable.key] = variable
        return others, tuple(iterations)


def _contents(variable: ObjectVariable) -> tuple[object, ...]:
    return variable.full_name, variable.entry.dtype, variable.entry.shape, variable.entry.crc32c


def _is_optimizer(node: Node) -> bool:
    return "iter" in node.children or {"_iterations", "_variables"} <= node.children.keys()


def _breadth_first(nodes: list[Node], start: int | None = 0) -> Iterator[int]:
    """Every node that can be reached, once: graphs have circles."""
    waiting = deque([start] if nodes and start is not None else [])
    seen = set(waiting)
    while waiting:
        number = waiting.popleft()
        yield number
        for child in nodes[number].children.values():
            if child not in seen:
                seen.add(child)
                waiting.append(child)
