"""Streams of seeded random numbers that several functions of one graph share.

In a session the kernel of a random operation continues its stream, whatever the session runs. In functions each has a kernel of its own,
which would start the same stream anew. So its place in the stream is kept in a variable, from which each function continues.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from estimator_bridge.modern.graph.fragments import Fragment, Operation, is_seeded
from estimator_bridge.modern.graph.side_effects import Effect, Effects

_ops = tf.raw_ops
_PHILOX = 1
_HANDLE, _DRAWN = "handle", "drawn"
_STATELESS: Mapping[str, Callable[..., Any]] = {
    "RandomStandardNormal": _ops.StatelessRandomNormalV2,
    "RandomUniform": _ops.StatelessRandomUniformV2,
    "RandomUniformInt": _ops.StatelessRandomUniformIntV2,
    "TruncatedNormal": _ops.StatelessTruncatedNormalV2,
}
"""Random operation -> operation that draws the same numbers from a given place of the stream."""


class RandomStreams:
    """Places in the streams of a graph's seeded random operations, by the operations' names."""

    def __init__(self) -> None:
        self._places: dict[str, Any] = {}

    def shared(self, fragment: Fragment) -> Fragment:
        """Returns the fragment with random operations that continue the streams of all fragments with the same operations."""
        graph_def = tf.compat.v1.GraphDef()
        graph_def.versions.CopyFrom(fragment.graph_def.versions)
        graph_def.library.CopyFrom(fragment.graph_def.library)
        captured: dict[str, Any] = {}
        for node in fragment.graph_def.node:
            if node.op in _STATELESS and is_seeded(node):
                handle = f"estimator_bridge_stream/{node.name}"
                captured[f"{handle}:0"] = self._place(node.name, node.attr["seed"].i, node.attr["seed2"].i).handle
                graph_def.node.extend(_nodes(node, handle))
            else:
                graph_def.node.add().CopyFrom(node)
        return dataclasses.replace(fragment, graph_def=graph_def, captured=captured)

    def _place(self, name: str, seed: int, seed2: int) -> Any:
        if name not in self._places:
            self._places[name] = ResourceVariable([0, seed2, seed], dtype=tf.int64, trainable=False)
        return self._places[name]


def unshared(ops: Iterable[Operation], effects: Effects) -> list[Operation]:
    """Returns the random operations that would start anew in each function: seeded ones of other kinds, or in branches and loops."""
    drawing = [op for op in ops if effects.of(op) is Effect.DRAW and op.type not in _STATELESS]
    return [op for op in drawing if effects.is_seeded(op)]


def _nodes(node: Any, handle: str) -> list[Any]:
    """Returns nodes that draw what a random operation draws, under its name, from the place of ``handle``."""
    output = "Tout" if node.op == "RandomUniformInt" else "dtype"
    given = [name for name in node.input if not name.startswith("^")]
    known = {f"argument_{number}": name for number, name in enumerate(given)} | {_HANDLE: handle}
    made = []
    for template in _template(node.op, len(given), node.attr[output].type, node.attr["T"].type):
        if template.name in known:
            continue
        copied = type(node).FromString(template.SerializeToString())
        copied.name = node.name if template.name == _DRAWN else f"{node.name}/{template.name}"
        copied.input[:] = [known.get(name) or f"{node.name}/{name}" for name in template.input]
        if template.op == "RngReadAndSkip":
            copied.input.extend(name for name in node.input if name.startswith("^"))
        made.append(copied)
    return made


@functools.cache
def _template(kind: str, arguments: int, dtype: int, index: int) -> Any:
    """Returns the nodes of a graph that reads a place, advances it as the random operation advances its kernel, and draws."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        shape = v1.placeholder(tf.as_dtype(index), [None], name="argument_0")
        limits = [v1.placeholder(tf.as_dtype(dtype), [], name=f"argument_{number}") for number in range(1, arguments)]
        handle = v1.placeholder(tf.resource, [], name=_HANDLE)
        size = tf.cast(tf.reduce_prod(shape), tf.uint64)
        place = tf.bitcast(_ops.RngReadAndSkip(resource=handle, alg=_PHILOX, delta=size), tf.uint64)
        kwargs = dict(zip(("minval", "maxval"), limits, strict=False)) or {"dtype": tf.as_dtype(dtype)}
        _STATELESS[kind](shape=shape, key=place[2:], counter=place[:2], alg=_PHILOX, name=_DRAWN, **kwargs)
    return list(graph.as_graph_def().node)
