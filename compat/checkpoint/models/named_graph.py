"""The object graph of the modern path's own model: TF1's names are its edges, so a name-based checkpoint determines it.

==============================  =======================================================================================
root                            model, optimizer, save_counter
model                           named_variables, optimizer
model.named_variables           an edge for each name
optimizer                       the same edges: names do not always identify an optimizer's variables, and TensorFlow
                                ignores an edge that its object does not have
==============================  =======================================================================================

A slice of a partitioned variable is a variable of its own; its edge is the name, the full shape and the extents in the notation of
TF1's Saver. Hyperparameters are not included: TF1 does not save them, scripts set them.
"""

import itertools
from collections.abc import Iterator, Sequence

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.compat.checkpoint.format import trackable
from estimator_bridge.compat.checkpoint.format.bundle import Entry, Extents, Shape
from estimator_bridge.compat.checkpoint.format.trackable import Node
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE, OBJECT_GRAPH, SAVE_COUNTER
from estimator_bridge.compat.checkpoint.reading import tensors
from estimator_bridge.compat.checkpoint.reading.index import check_partitioned, slice_shape
from estimator_bridge.compat.checkpoint.reading.tensors import Stored
from estimator_bridge.compat.checkpoint.writing.draft import Draft

VARIABLES = "named_variables"
_SAVE_COUNTER = "save_counter"


def label(name: str, slice_spec: str = "") -> str:
    """Returns the edge to a variable or to a slice; a slice that covers its variable counts as a whole variable.

    Args:
        name: Name of the whole variable.
        slice_spec: TF1's notation of full shape and extents; "" for a whole variable.

    Example:
        >>> label("dense/kernel"), label("emb", "10 3 0,5:0,3"), label("logits", "4 1 0,4:0,1")
        ('dense/kernel', 'emb 10 3 0,5:0,3', 'logits')
    """
    if not slice_spec:
        return name
    shape, extents = _parsed(slice_spec)
    return name if shape == tuple(length for _, length in extents) else f"{name} {slice_spec}"


def spec(shape: Shape, extents: Extents) -> str:
    """Returns TF1's notation of a slice.

    Example:
        >>> spec((10, 3), ((0, 5), (0, -1)))
        '10 3 0,5:0,3'
    """
    lengths = slice_shape(shape, extents)
    ranges = ":".join(f"{start},{length}" for (start, _), length in zip(extents, lengths, strict=True))
    return " ".join([*map(str, shape), ranges])


def is_named(nodes: Sequence[Node]) -> bool:
    """Returns True if an object graph is that of the modern path's model."""
    model = nodes[0].children.get("model")
    return model is not None and VARIABLES in nodes[model].children


def add_objects(draft: Draft) -> None:
    """Gives every name of a draft its place in the modern model's object graph; the bytes stay where they are.

    Args:
        draft: Draft of a name-based checkpoint; changed.
    """
    edges = list(_edges(draft))
    numbers = {edge: number for number, (edge, _) in enumerate(edges, 5)}
    fixed = [
        Node({"model": 1, "optimizer": 3, _SAVE_COUNTER: 4}),
        Node({VARIABLES: 2, "optimizer": 3}),
        Node(numbers),
        Node(numbers),
        trackable.variable(_SAVE_COUNTER, SAVE_COUNTER),
    ]
    variables = (trackable.variable(edge, _key(edge)) for edge in numbers)  # one at a time: there may be hundreds of thousands
    graph = trackable.encode(itertools.chain(fixed, variables))
    del numbers, fixed
    draft.put(SAVE_COUNTER, tensors.number(1))
    for edge, stored in edges:
        draft.put(_key(edge), stored)
    draft.put(OBJECT_GRAPH, tensors.of_strings([graph], ()))


def add_names(draft: Draft, nodes: Sequence[Node]) -> None:
    """Adds TF1's names to a draft of the modern model's checkpoint, with slices put together.

    Args:
        draft: Draft of an object-based checkpoint; changed.
        nodes: Object graph of the modern path's model.

    Raises:
        CorruptError: Slices do not make up their variable.
    """
    pieces: dict[tuple[str, Shape], dict[Extents, Stored]] = {}
    model = nodes[nodes[0].children["model"]]
    holders = [model.children[VARIABLES], model.children.get("optimizer"), nodes[0].children.get("optimizer")]
    saved = {edge: child for number in holders if number is not None for edge, child in nodes[number].children.items()}
    for edge, number in saved.items():
        value = nodes[number].value()
        if value is None or value.key not in draft.entries:
            continue
        name, _, slice_spec = edge.partition(" ")
        if slice_spec:
            shape, extents = _parsed(slice_spec)
            pieces.setdefault((name, shape), {})[extents] = draft.entries[value.key]
        else:
            draft.alias(value.key, name)
    for (name, shape), slices in pieces.items():
        whole = Entry(next(iter(slices.values())).dtype, shape, slices=tuple(sorted(slices)))
        check_partitioned(name, whole, slices)
        draft.put(name, whole, slices)


def _key(edge: str) -> str:
    escaped = edge.replace(".", "..").replace("/", ".S")  # as TensorFlow does in keys
    return f"model/{VARIABLES}/{escaped}{ATTRIBUTE}"


def _edges(draft: Draft) -> Iterator[tuple[str, Stored]]:
    for name, stored in sorted(draft.entries.items()):
        slices = sorted(draft.pieces.get(name, {}).items())
        yield from ((label(name, spec(stored.shape, extents)), piece) for extents, piece in slices)
        if not slices:
            yield label(name), stored


def _parsed(slice_spec: str) -> tuple[Shape, Extents]:
    try:
        *shape, ranges = slice_spec.split(" ")
        pairs = [text.split(",") for text in ranges.split(":")]
        return tuple(map(int, shape)), tuple((int(start), int(length)) for start, length in pairs)
    except ValueError:
        raise CorruptError("The object graph has a slice that cannot be read.", received=slice_spec) from None
