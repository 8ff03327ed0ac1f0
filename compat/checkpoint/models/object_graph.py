"""A model and its optimizer as their object graph describes them: variables, slots and hyperparameters."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from estimator_bridge.compat.checkpoint.errors import NotFoundError, naming_file
from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.trackable import Node
from estimator_bridge.compat.checkpoint.names.matching import Named
from estimator_bridge.compat.checkpoint.names.naming import OBJECT_GRAPH, SAVE_COUNTER
from estimator_bridge.compat.checkpoint.reading import values
from estimator_bridge.compat.checkpoint.reading.index import Index

Flavour = Literal["legacy", "tf_keras", "keras3"]  # tf_keras.optimizers.legacy; newer ones of tf_keras; Keras 3
_NO_SLOTS = {"_variables", "_trainable_variables", "_index_dict", "_trainable_variables_indices"}
_ITERATIONS = {"iter", "_iterations"}  # one for each optimizer; a wrapper has that of its inner optimizer
_KERAS_API = "keras_api"  # in a SavedModel: metrics, and a second path to the model's variables
_COUNTER = "save_counter"


@dataclasses.dataclass(frozen=True)
class ObjectSlot:
    """A slot variable.

    Attributes:
        slot: Kind, e.g. "m" in ``tf_keras.optimizers.legacy``, and "momentums" in the others.
        variable: Key of the model's variable; "" if the graph does not identify it.
        stored: Key, name and shape of the slot itself.
    """

    slot: str
    variable: str
    stored: Named


@dataclasses.dataclass(frozen=True)
class ObjectModel:
    """A checkpoint's object graph, sorted.

    Attributes:
        index: Index of its checkpoint.
        graph: TrackableObjectGraph message.
        nodes: Nodes of the message.
        variables: Variables of the model, in the order of the graph.
        slots: Slots of its optimizers.
        flavour: Family of the optimizer; None without one.
        iterations: Keys of the numbers of updates, one for each optimizer.
        others: Hyperparameters, metrics and ``save_counter``, for which a TF1 checkpoint has no name.
        copies: Key of a second copy -> key of the variable.
    """

    index: Index
    graph: bytes
    nodes: list[Node]
    variables: tuple[Named, ...]
    slots: tuple[ObjectSlot, ...]
    flavour: Flavour | None
    iterations: tuple[str, ...]
    others: Mapping[str, Named]
    copies: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_graph(index: Index) -> tuple[bytes, list[Node]]:
    """Reads the TrackableObjectGraph message of a checkpoint.

    Args:
        index: Index of the checkpoint.

    Returns:
        The message and its nodes.

    Raises:
        NotFoundError: It has none.
        CorruptError: It is damaged; the error names the checkpoint.
    """
    if OBJECT_GRAPH not in index.entries:
        raise NotFoundError(
            "The checkpoint has no object graph.",
            expected="one that tf.train.Checkpoint or Keras wrote, or a SavedModel",
            received=str(index.prefix),
        )
    graph = b"".join(values.read_strings(index, index.entries[OBJECT_GRAPH], OBJECT_GRAPH))
    with naming_file(index.prefix):
        return graph, trackable.decode(graph)


def read_object_model(index: Index) -> ObjectModel:
    """Reads a checkpoint's object graph.

    Args:
        index: Index of the checkpoint.

    Returns:
        The model.

    Raises:
        NotFoundError: There is no object graph.
        CorruptError: The graph is damaged, or names values that are missing.
    """
    return _Sorter(index, *read_graph(index)).model()


def read_saved_model(index: Index) -> ObjectModel:
    """Reads a SavedModel's object graph as ``tf.train.Checkpoint(model=model, optimizer=model.optimizer)`` would have saved it.

    Args:
        index: Index of the SavedModel's variables, which lack the ``save_counter`` of such checkpoints.

    Returns:
        The model.

    Raises:
        NotFoundError: There is no object graph, e.g. in a SavedModel of TF1.
        CorruptError: The graph is damaged, or names values that are missing.
    """
    _, nodes = read_graph(index)
    nodes[0].children.pop(_KERAS_API, None)
    root, counter = Node({"model": 0, _COUNTER: len(nodes) + 1}), trackable.variable(_COUNTER, SAVE_COUNTER)
    root.children |= {name: child for name, child in nodes[0].children.items() if name == "optimizer"}
    nodes = trackable.reachable([*nodes, root, counter], len(nodes))
    return _Sorter(index, trackable.encode(nodes), nodes).model()


class _Sorter:
    """Sorts the values of an object graph."""

    def __init__(self, index: Index, graph: bytes, nodes: list[Node]) -> None:
        self._index, self._graph, self._nodes = index, graph, nodes
        self._variables = [_variable(node, index) for node in nodes]
        self._order = trackable.breadth_first(nodes)
        self._optimizers = [nodes[number] for number in self._order if _is_optimizer(nodes[number])]

    def model(self) -> ObjectModel:
        slots = tuple(slot for optimizer in self._optimizers for slot in self._slots_of(optimizer))
        kept = [
            (name, variable)
            for optimizer in self._optimizers
            for name, child in optimizer.children.items()
            if (variable := self._variables[child])
        ]
        others = {variable.key: variable for name, variable in kept if name not in _ITERATIONS}
        iterations = tuple(dict.fromkeys(variable.key for name, variable in kept if name in _ITERATIONS))
        copies = dict(pair for number in self._order for pair in self._copies(self._nodes[number]))
        taken = {slot.stored.key for slot in slots}.union(others, iterations, copies)
        variables = {variable.key: variable for variable in self._found(self._order) if variable.key not in taken}
        root = self._nodes[0].children
        for name in (_COUNTER, _KERAS_API):
            reached = trackable.breadth_first(self._nodes, root[name]) if name in root else []
            for variable in self._found(reached):
                if name == _COUNTER or variable.key.startswith(f"{_KERAS_API}/"):
                    others[variable.key] = variables.pop(variable.key, variable)
        first = self._optimizers[0].children if self._optimizers else ()
        other: Flavour | None = "keras3" if "_trainable_variables" in first else "tf_keras" if first else None
        flavour = "legacy" if "iter" in first else other
        return ObjectModel(
            self._index, self._graph, self._nodes, tuple(variables.values()), slots, flavour, iterations, others, copies
        )

    def _found(self, numbers: Iterable[int]) -> Iterator[Named]:
        """Yields the variables among some nodes."""
        return (variable for number in numbers if (variable := self._variables[number]))

    def _copies(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yields second copies and their variables: an export of Keras 3 saves each variable twice, as Keras' and as TensorFlow's."""
        if not {"variables", "_all_variables"} <= node.children.keys():
            return
        firsts: dict[tuple[object, ...], list[str]] = {}
        for variable in self._listed(node, "variables").values():
            firsts.setdefault(_contents(variable), []).append(variable.key)
        for copy in self._listed(node, "_all_variables").values():
            same = firsts.get(_contents(copy), [])
            if len(same) == 1 and copy.key not in same:
                yield copy.key, same[0]

    def _slots_of(self, optimizer: Node) -> Iterator[ObjectSlot]:
        for reference in optimizer.slots:
            variable, stored = self._variables[reference.variable], self._variables[reference.node]
            if variable and stored:
                yield ObjectSlot(reference.slot, variable.key, stored)
        trained = self._listed(optimizer, "_trainable_variables")
        for name in optimizer.children:
            members = {} if name in _NO_SLOTS else self._listed(optimizer, name)
            for position, stored in members.items():
                variable = trained.get(position) or self._of_slot(stored)
                yield ObjectSlot(name.lstrip("_"), variable.key if variable else "", stored)

    def _of_slot(self, slot: Named) -> Named | None:
        """Finds the variable of a slot such as ``m/dense/kernel`` or ``Adam/m/dense/kernel``; None if several have that name."""
        name = slot.name
        for _ in range(2):
            name = name.partition("/")[2]
            same = [variable for variable in self._by_name.get(name, ()) if variable.entry.shape == slot.entry.shape]
            if same:
                return same[0] if len(same) == 1 else None
        return None

    @functools.cached_property
    def _by_name(self) -> dict[str, list[Named]]:
        by_name: dict[str, list[Named]] = {}
        for variable in {variable.key: variable for variable in self._found(self._order)}.values():
            by_name.setdefault(variable.name, []).append(variable)
        return by_name

    def _listed(self, node: Node, name: str) -> dict[int, Named]:
        """Returns the position and the variable of each member of a list."""
        members = self._nodes[node.children[name]].children.items() if name in node.children else ()
        found = ((position, self._variables[child]) for position, child in members if position.isdecimal())
        return {int(position): variable for position, variable in found if variable}


def _variable(node: Node, index: Index) -> Named | None:
    value = node.value()
    entry = index.entries.get(value.key) if value else None
    return Named(value.key, value.full_name, entry) if value and entry else None


def _contents(variable: Named) -> tuple[object, ...]:
    return variable.name, variable.entry.dtype, variable.entry.shape, variable.entry.crc32c


def _is_optimizer(node: Node) -> bool:
    return "iter" in node.children or {"_iterations", "_variables"} <= node.children.keys()
