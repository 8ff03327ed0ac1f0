"""The object graph of a TF2 checkpoint: the Python objects that held the variables, linked by the names of their attributes.

========================  =============================================================================================
TrackableObjectGraph      1 nodes (repeated)
TrackableObject           1 children (1 node_id, 2 local_name), 2 attributes (1 name, 2 full_name, 3 checkpoint_key),
                          3 slot_variables (1 original_variable_node_id, 2 slot_name, 3 slot_variable_node_id)
========================  =============================================================================================

Node 0 is the root. Other fields of a node (registered savers, whether it has values) are left out. Graphs have circles.
"""

import dataclasses
from collections.abc import Container, Iterable
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.runtime.protobuf import wire

VALUE = b"VARIABLE_VALUE"


class Attribute(NamedTuple):
    """A value that a node saved."""

    name: bytes
    full_name: str
    key: str


class SlotReference(NamedTuple):
    """A slot variable that an optimizer node keeps."""

    variable: int
    slot: str
    node: int


@dataclasses.dataclass
class Node:
    """One object.

    Attributes:
        children: Local name -> number of a node.
        attributes: Values that it saved.
        slots: Slot variables of an optimizer of Keras' older kind.
    """

    children: dict[str, int] = dataclasses.field(default_factory=dict)
    attributes: list[Attribute] = dataclasses.field(default_factory=list)
    slots: list[SlotReference] = dataclasses.field(default_factory=list)

    def value(self) -> Attribute | None:
        """Returns the value that a variable's node saved; None for other objects."""
        return next((attribute for attribute in self.attributes if attribute.name == VALUE), None)


def decode(data: bytes) -> list[Node]:
    """Decodes an object graph.

    Args:
        data: TrackableObjectGraph.

    Returns:
        Its nodes, which refer only to each other.

    Raises:
        CorruptError: The message is damaged, has no nodes, or refers to a node that it lacks.

    Example:
        >>> nodes = [Node({"w": 1}), Node(attributes=[Attribute(VALUE, "dense/w", "w/.ATTRIBUTES/VARIABLE_VALUE")])]
        >>> decode(encode(nodes)) == nodes
        True
    """
    nodes = [_node(message) for message in wire.messages(data, 1)]
    if not nodes:
        raise CorruptError("The object graph has no nodes.", expected="at least the root")
    for node in nodes:
        numbers = [*node.children.values(), *(number for slot in node.slots for number in (slot.variable, slot.node))]
        if any(number >= len(nodes) for number in numbers):
            raise CorruptError("The object graph refers to a node that it does not have.", received=str(max(numbers)))
    return nodes


def encode(nodes: Iterable[Node]) -> bytes:
    """Encodes nodes as a TrackableObjectGraph, one node at a time."""
    data = bytearray()
    for node in nodes:
        data += wire.text(1, _encode_node(node))
    return bytes(data)


def variable(full_name: str, key: str) -> Node:
    """Returns the node of a variable.

    Example:
        >>> variable("dense/w", "w/.ATTRIBUTES/VARIABLE_VALUE").value().key
        'w/.ATTRIBUTES/VARIABLE_VALUE'
    """
    return Node(attributes=[Attribute(VALUE, full_name, key)])


def reachable(nodes: list[Node], root: int) -> list[Node]:
    """Returns the nodes that can be reached from a node, which becomes the first, with the slots of variables.

    Example:
        >>> [sorted(node.children.items()) for node in reachable([Node({"other": 1}), Node(), Node({"model": 1})], 2)]
        [[('model', 1)], []]
    """
    order = {number: place for place, number in enumerate(breadth_first(nodes, root, slots=True))}
    return [_renumbered(nodes[number], order) for number in order]


def breadth_first(nodes: list[Node], root: int = 0, slots: bool = False) -> list[int]:
    """Returns the number of every node that can be reached, once: graphs have circles.

    Args:
        nodes: Nodes of the graph.
        root: Number of the first node.
        slots: True to follow an optimizer's slots, too.
    """
    order, seen = [root], {root}
    for number in order:  # grows during the loop
        followed = [slot.node for slot in nodes[number].slots] if slots else []
        new = dict.fromkeys(child for child in [*nodes[number].children.values(), *followed] if child not in seen)
        order += new
        seen |= new.keys()
    return order


def without(nodes: list[Node], keys: Container[str]) -> list[Node]:
    """Returns the nodes without the values of some keys: TensorFlow looks for every value that a graph announces.

    Example:
        >>> nodes = [Node({"w": 1}), variable("w", "w/.ATTRIBUTES/VARIABLE_VALUE")]
        >>> without(nodes, {"w/.ATTRIBUTES/VARIABLE_VALUE"})[1].attributes
        []
    """
    gone = {number for number, node in enumerate(nodes) if any(attribute.key in keys for attribute in node.attributes)}
    return [
        Node(node.children, [] if number in gone else node.attributes, [slot for slot in node.slots if slot.node not in gone])
        for number, node in enumerate(nodes)
    ]


def _renumbered(node: Node, order: dict[int, int]) -> Node:
    children = {name: order[child] for name, child in node.children.items()}
    slots = [SlotReference(order[s.variable], s.slot, order[s.node]) for s in node.slots if s.variable in order]
    return Node(children, node.attributes, slots)


def _encode_node(node: Node) -> bytes:
    data = bytearray()
    for name, number in node.children.items():
        data += wire.text(1, wire.integer(1, number) + wire.text(2, name.encode()))
    for kind, full_name, key in node.attributes:
        data += wire.text(2, wire.text(1, kind) + wire.text(2, full_name.encode()) + wire.text(3, key.encode()))
    for variable, slot, number in node.slots:
        data += wire.text(3, wire.integer(1, variable) + wire.text(2, slot.encode()) + wire.integer(3, number))
    return bytes(data)


def _node(data: bytes) -> Node:
    children = {_text(message, 2): _integer(message, 1) for message in wire.messages(data, 1)}
    attributes = [Attribute(_bytes(message, 1), _text(message, 2), _text(message, 3)) for message in wire.messages(data, 2)]
    slots = [SlotReference(_integer(message, 1), _text(message, 2), _integer(message, 3)) for message in wire.messages(data, 3)]
    return Node(children, attributes, slots)


def _bytes(data: bytes, number: int) -> bytes:
    return ([*wire.messages(data, number)] or [b""])[-1]


def _text(data: bytes, number: int) -> str:
    return _bytes(data, number).decode("utf-8", "surrogateescape")


def _integer(data: bytes, number: int) -> int:
    wanted = wire.tag(number, wire.VARINT)
    return next((value for key, value in wire.fields(data) if key == wanted and isinstance(value, int)), 0)
