"""Losses and gradients of the new script, wherever it asks a gradient tape for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator_bridge.parity.rewrite.session import Session
from estimator_bridge.runtime.patching import wrap


def intercept(session: Session) -> None:
    """Records each gradient with respect to variables, for the life of the process."""

    def gradient(original: Callable[..., Any], tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        computed = original(tape, target, sources, *args, **kwargs)
        pairs = [
            (variable, value)
            for variable, value in zip(tf.nest.flatten(sources), tf.nest.flatten(computed), strict=True)
            if value is not None and isinstance(variable, tf.Variable)
        ]
        if pairs:
            _write(session, target, pairs)
        return computed

    wrap(tf.GradientTape, gradient=gradient)


def _write(session: Session, target: Any, pairs: list[tuple[Any, Any]]) -> None:
    names = [variable.name.partition(":")[0] for variable, _ in pairs]
    parts: list[Any] = []
    for _, value in pairs:
        is_sparse = isinstance(value, tf.IndexedSlices)
        parts.append(tf.convert_to_tensor(value) if is_sparse else value)
    losses = [tf.reduce_sum(part) for part in tf.nest.flatten(target)]
    loss = losses[0] if len(losses) == 1 else tf.add_n(losses)
    if tf.executing_eagerly():
        session.record(names, loss.numpy(), [part.numpy() for part in parts])
        return
    session.look_at_graph(tf.compat.v1.get_default_graph())

    def keep(loss: Any, *values: Any) -> Any:
        session.record(names, loss, values)
        return loss

    tf.numpy_function(keep, [loss, *parts], loss.dtype, stateful=True)
