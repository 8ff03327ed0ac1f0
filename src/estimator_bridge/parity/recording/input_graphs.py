"""The graphs in which a replay builds a script's input, for the structure of its batches alone.

Hooks of the script may hold tensors of such a graph, e.g., to give an iterator its data. What they run of it runs in a session of its own.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.client.session import BaseSession

from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.runtime.patching import wrap

_SESSIONS: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""Graph -> its session; None before a hook runs something of it."""


@contextlib.contextmanager
def input_graph() -> Iterator[None]:
    """While active, an empty graph is the default one, and any session runs its operations from now on."""
    _serve_hooks()
    with tf.Graph().as_default() as graph:
        _SESSIONS[graph] = None
        yield


@functools.cache
def _serve_hooks() -> None:
    for session in (BaseSession, ReadOnlySession):
        wrap(session, run=_run)


def _run(original: Callable[..., Any], session: Any, fetches: Any, *args: Any, **kwargs: Any) -> Any:
    graphs = (element.graph for element in tf.nest.flatten(fetches) if isinstance(element, tf.Operation | tf.Tensor))
    graph = next(graphs, session.graph)
    if graph is session.graph or graph not in _SESSIONS:
        return original(session, fetches, *args, **kwargs)
    _SESSIONS[graph] = _SESSIONS[graph] or tf.compat.v1.Session(graph=graph)
    return _SESSIONS[graph].run(fetches, *args, **kwargs)
