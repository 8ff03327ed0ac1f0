"""Which variables a graph reads row by row, so that their gradients are sparse: the graph stands beside the checkpoint."""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.runtime.protobuf import wire

_VARIABLES = {"Variable", "VariableV2", "VarHandleOp"}
_PASSED_ON = {
    "Identity",
    "ReadVariableOp",
    "Enter",
    "RefEnter",
    "Switch",
    "RefSwitch",
    "Concat",
    "ConcatV2",
}  # sparse gradients
_GATHERS = {"Gather", "GatherV2", "GatherNd", "ResourceGather", "ResourceGatherNd"}
_ASSIGNS = {"ScatterUpdate", "ResourceScatterUpdate"}
_WANTED = _VARIABLES | _PASSED_ON | _GATHERS | _ASSIGNS
_GRAPH, _NODE, _LIBRARY, _FUNCTION, _BODY = (wire.tag(number, wire.BYTES) for number in (2, 1, 2, 1, 3))
_NAME, _OP, _INPUT = (wire.tag(number, wire.BYTES) for number in (1, 2, 3))
_TEXT = re.compile(r'^ *(?:(?P<field>\w+): "(?P<value>[^"]*)"|(?P<open>\w+) \{|(?P<close>\}))\s*$')


class RowAccess(NamedTuple):
    """How a graph uses its variables.

    Attributes:
        gathered: variables of which it reads single rows.
        assigned: variables of which it assigns single rows, as LazyAdam does with its slots.
        told_by: the file.
    """

    gathered: frozenset[str]
    assigned: frozenset[str]
    told_by: Path


class Node(NamedTuple):
    """An operation of the graph; ``name`` is "" for one inside of a function."""

    name: str
    op: str
    inputs: tuple[str, ...]


def read_row_access(prefix: Path) -> RowAccess | None:
    """Looks for ``PREFIX.meta``, which a Saver writes, then for ``graph.pbtxt``, which an Estimator does.

    Args:
        prefix: of a name-based checkpoint.

    Returns:
        What the graph says; None where there is no graph, it cannot be read, or a function of it gathers rows of what it is given.
    """
    with contextlib.suppress(OSError, ValueError, CorruptError):
        return row_access(_binary(meta := prefix.with_name(f"{prefix.name}.meta")), meta)
    with contextlib.suppress(OSError, ValueError):
        return row_access(_text(graph := prefix.with_name("graph.pbtxt")), graph)
    return None


def row_access(nodes: Iterable[Node], path: Path) -> RowAccess:
    """Follows each gather back to the variables it reads.

    Args:
        nodes: of the graph.
        path: of the file, for the report.

    Returns:
        The names of the variables, the parts of partitioned ones under the name of the whole.

    Raises:
        ValueError: where a function gathers: which variable it is given is not followed.

    Example:
        >>> graph = [Node("w/part_0", "VarHandleOp", ()), Node("rows", "ResourceGather", ("w/part_0", "ids"))]
        >>> sorted(row_access(graph, Path("model.meta")).gathered)
        ['w']
    """
    wanted: dict[str, Node] = {}
    for node in nodes:
        if node.name and node.op in _WANTED:
            wanted[node.name] = node
        elif not node.name and node.op in _GATHERS and node.op.startswith("Resource"):
            raise ValueError(path)
    gathered, assigned = (
        frozenset(name for node in wanted.values() if node.op in kinds for name in _origins(node.inputs[:1], wanted))
        for kinds in (_GATHERS, _ASSIGNS)
    )
    return RowAccess(gathered, assigned, path)


def _origins(inputs: Iterable[str], nodes: dict[str, Node]) -> Iterator[str]:
    """The variables that a value comes from, unchanged."""
    waiting, seen = list(inputs), set[str]()
    while waiting:
        name = waiting.pop().partition(":")[0]
        node = nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.op in _VARIABLES:
            yield re.sub(r"/part_\d+(?=/|$)", "", name)
        elif node.op in _PASSED_ON:
            waiting += node.inputs


def _binary(path: Path) -> Iterator[Node]:
    """Nodes of a MetaGraphDef; large constants in it are stepped over and never read."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # stays open as long as a view of it is in use
    for graph in _messages(memoryview(mapped), _GRAPH):
        for message in _messages(graph, _NODE):
            yield _node(message)
        for library in _messages(graph, _LIBRARY):
            for function in _messages(library, _FUNCTION):
                yield from (_node(message)._replace(name="") for message in _messages(function, _BODY))


def _messages(data: memoryview, tag: int) -> Iterator[memoryview]:
    # wire.fields slices what it is given: slices of a view are views
    return (cast(memoryview, value) for key, value in wire.fields(cast(bytes, data)) if key == tag)


def _node(data: memoryview) -> Node:
    name, op, inputs = "", "", []
    for key, value in wire.fields(cast(bytes, data)):
        if key in (_NAME, _OP, _INPUT):
            text = bytes(cast(memoryview, value)).decode()
            if key == _NAME:
                name = text
            elif key == _OP:
                op = text
            else:
                inputs.append(text)
    return Node(name, op, tuple(inputs))


def _text(path: Path) -> Iterator[Node]:
    """Nodes of a GraphDef in protobuf's text format, as Estimators write it: a field a line."""
    blocks: list[str] = []
    fields: list[tuple[str, str]] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            match = _TEXT.match(line)
            if match is None:
                continue
            if match["open"]:
                blocks.append(match["open"])
                fields = [] if match["open"] in {"node", "node_def"} else fields
            elif match["close"]:
                if blocks and blocks.pop() in {"node", "node_def"}:
                    yield _of_fields(fields, inside_function=bool(blocks))
            elif blocks and blocks[-1] in {"node", "node_def"}:
                fields.append((match["field"], match["value"]))


def _of_fields(fields: list[tuple[str, str]], inside_function: bool) -> Node:
    single = dict(fields)
    inputs = tuple(value for field, value in fields if field == "input")
    return Node("" if inside_function else single.get("name", ""), single.get("op", ""), inputs)
