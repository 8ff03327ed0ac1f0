"""Finds the variables that a graph reads row by row, so that their gradients are sparse, in the graph beside a checkpoint."""

import collections
import contextlib
import mmap
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.runtime.protobuf import wire

_VARIABLES = {"Variable", "VariableV2", "VarHandleOp"}
_FORWARDING = {"Identity", "ReadVariableOp", "Enter", "RefEnter", "Switch", "RefSwitch", "Concat", "ConcatV2"}
_GATHERS = {"Gather", "GatherV2", "GatherNd", "ResourceGather", "ResourceGatherNd"}
_ASSIGNS = {"ScatterUpdate", "ResourceScatterUpdate"}
_RELEVANT = _VARIABLES | _FORWARDING | _GATHERS | _ASSIGNS
_NAME_OP_INPUT = [wire.tag(number, wire.BYTES) for number in (1, 2, 3)]
_NODES = {"node", "node_def"}  # blocks; the latter is inside of a function
_TEXT = re.compile(r'^ *(?:(?P<field>\w+): "(?P<value>[^"]*)"|(?P<open>\w+) \{|(?P<close>\}))\s*$')


class RowAccess(NamedTuple):
    """A graph's access to single rows of its variables.

    Attributes:
        gathered: Variables of which it reads single rows.
        assigned: Variables of which it assigns single rows, as LazyAdam does with its slots.
        file: File with the graph.
    """

    gathered: frozenset[str]
    assigned: frozenset[str]
    file: Path


class GraphNode(NamedTuple):
    """An operation of the graph; ``name`` is "" for one inside of a function."""

    name: str
    op: str
    inputs: tuple[str, ...]


def read_row_access(prefix: Path) -> RowAccess | None:
    """Reads ``PREFIX.meta``, which a Saver writes, or else ``graph.pbtxt``, which an Estimator writes.

    Args:
        prefix: Prefix of a name-based checkpoint.

    Returns:
        The graph's access to rows; None if no graph can be read, or if one of its functions gathers rows of an argument.
    """
    with contextlib.suppress(OSError, ValueError, CorruptError):
        return row_access(_binary(meta := prefix.with_name(f"{prefix.name}.meta")), meta)
    with contextlib.suppress(OSError, ValueError):
        return row_access(_text(graph := prefix.with_name("graph.pbtxt")), graph)
    return None


def row_access(nodes: Iterable[GraphNode], path: Path) -> RowAccess:
    """Follows each gather back to the variables that it reads.

    Args:
        nodes: Nodes of the graph.
        path: File with the graph, for the report.

    Returns:
        The names of the variables; parts of a partitioned variable have the name of the whole.

    Raises:
        ValueError: A function gathers; its arguments are not followed to a variable.

    Example:
        >>> graph = [GraphNode("w/part_0", "VarHandleOp", ()), GraphNode("rows", "ResourceGather", ("w/part_0", "ids"))]
        >>> sorted(row_access(graph, Path("model.meta")).gathered)
        ['w']
    """
    relevant: dict[str, GraphNode] = {}
    for node in nodes:
        if node.name and node.op in _RELEVANT:
            relevant[node.name] = node
        elif not node.name and node.op in _GATHERS and node.op.startswith("Resource"):
            raise ValueError(path)
    gathered, assigned = (
        frozenset(name for node in relevant.values() if node.op in kinds for name in _origins(node.inputs[:1], relevant))
        for kinds in (_GATHERS, _ASSIGNS)
    )
    return RowAccess(gathered, assigned, path)


def _origins(inputs: Iterable[str], nodes: dict[str, GraphNode]) -> Iterator[str]:
    """Yields the variables whose value reaches an operation unchanged."""
    waiting, seen = list(inputs), set[str]()
    while waiting:
        name = waiting.pop().partition(":")[0]
        node = nodes.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.op in _VARIABLES:
            yield re.sub(r"/part_\d+(?=/|$)", "", name)
        elif node.op in _FORWARDING:
            waiting += node.inputs


def _binary(path: Path) -> Iterator[GraphNode]:
    """Yields the nodes of a MetaGraphDef; large constants in it are stepped over and never read."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # stays open while a view of it is in use
    for graph in wire.messages(cast(bytes, memoryview(mapped)), 2):  # slices of a view are views
        yield from map(_node, wire.messages(graph, 1))
        for library in wire.messages(graph, 2):
            for function in wire.messages(library, 1):
                yield from (_node(message)._replace(name="") for message in wire.messages(function, 3))


def _node(data: bytes) -> GraphNode:
    texts = [(tag, bytes(text).decode()) for tag, text in wire.fields(data) if tag in _NAME_OP_INPUT]
    names, ops, inputs = ([text for tag, text in texts if tag == wanted] for wanted in _NAME_OP_INPUT)
    return GraphNode("".join(names), "".join(ops), tuple(inputs))


def _text(path: Path) -> Iterator[GraphNode]:
    """Yields the nodes of a GraphDef in protobuf's text format, which Estimators write with a field a line."""
    blocks: list[str] = []
    fields = collections.defaultdict[str, list[str]](list)
    with path.open(encoding="utf-8", errors="replace") as file:
        for match in filter(None, map(_TEXT.match, file)):
            is_node = not _NODES.isdisjoint(blocks[-1:])
            if match["open"]:
                blocks.append(match["open"])
                if match["open"] in _NODES:
                    fields.clear()
            elif match["field"] and is_node:
                fields[match["field"]].append(match["value"])
            elif match["close"] and blocks:
                blocks.pop()
                if is_node:
                    yield GraphNode("" if blocks else "".join(fields["name"]), "".join(fields["op"]), tuple(fields["input"]))
