"""The graphs in which a replay builds a script's input, for the structure of its batches alone.

Hooks of the script may hold operations of such a graph, e.g., to give an iterator its data. These run in a session of their own.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.client.session import BaseSession

from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.runtime.patching import wrap

_SESSION = "_estimator_bridge_session"
"""Attribute of such a graph: its session, None before it has one."""


@contextlib.contextmanager
def input_graph() -> Iterator[None]:
    """While active, an empty graph is the default one; any session runs its operations from now on."""
    _serve_hooks()
    with tf.Graph().as_default() as graph:
        setattr(graph, _SESSION, None)
        yield


@functools.cache
def _serve_hooks() -> None:
    for session in (BaseSession, ReadOnlySession):
        wrap(session, run=_run)


def _run(original: Callable[..., Any], session: Any, fetches: Any, *args: Any, **kwargs: Any) -> Any:
    elements = fetches if isinstance(fetches, list | tuple) else [fetches]
    graph = next((one.graph for one in elements if isinstance(one, tf.Operation)), session.graph)
    if graph is session.graph or not hasattr(graph, _SESSION):
        return original(session, fetches, *args, **kwargs)
    own = getattr(graph, _SESSION) or tf.compat.v1.Session(graph=graph)
    setattr(graph, _SESSION, own)
    return own.run(fetches, *args, **kwargs)
