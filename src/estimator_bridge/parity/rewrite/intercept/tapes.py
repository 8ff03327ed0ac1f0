"""Losses and gradients of the new script, wherever it asks a gradient tape or a graph for them, and those that optimizers apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import gradients_util

from estimator_bridge.parity.rewrite.session import Session, is_wrapped
from estimator_bridge.runtime.patching import wrap


def intercept(session: Session, keras: Any) -> None:
    """Records each gradient with respect to variables, and what optimizers apply, for the life of the process.

    Args:
        session: Session of the new side.
        keras: tf_keras.
    """

    def gradient(original: Callable[..., Any], tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        return recorded(original(tape, target, sources, *args, **kwargs), target, sources)

    def gradients(original: Callable[..., Any], ys: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
        return recorded(original(ys, xs, *args, **kwargs), ys, xs)

    def recorded(computed: Any, target: Any, sources: Any) -> Any:
        pairs = [
            (variable, value)
            for variable, value in zip(tf.nest.flatten(sources), tf.nest.flatten(computed), strict=True)
            if value is not None and isinstance(variable, tf.Variable)
        ]
        return _behind(lambda: _write(session, target, pairs), computed) if pairs else computed

    def apply_new(original: Callable[..., Any], optimizer: Any, grads_and_vars: Any) -> Any:
        return original(optimizer, _apply(session, optimizer, grads_and_vars))

    def apply_legacy(
        original: Callable[..., Any], optimizer: Any, strategy: Any, grads_and_vars: Any, *args: Any, **kwargs: Any
    ) -> Any:
        return original(optimizer, strategy, _apply(session, optimizer, grads_and_vars), *args, **kwargs)

    wrap(tf.GradientTape, gradient=gradient)
    wrap(gradients_util, _GradientsHelper=gradients)
    wrap(keras.optimizers.Optimizer, _internal_apply_gradients=apply_new)
    wrap(keras.optimizers.legacy.Optimizer, _distributed_apply=apply_legacy)


def _behind(write: Callable[[], None], computed: Any) -> Any:
    """Records a step, and returns its gradients; those of a wrapped graph, which only executes what they need, need the records, of a choice its result."""
    graph = tf.compat.v1.get_default_graph()
    if tf.executing_eagerly() or not is_wrapped(graph):
        write()
        return computed
    known = {*graph.get_operations()}
    write()
    added = [one for one in graph.get_operations() if one not in known]
    records = [one for one in added if one.op_def.is_stateful or (one.type == "Identity" and one.inputs[0].op.type == "If")]
    with tf.control_dependencies(records):
        return tf.nest.map_structure(lambda one: one if one is None else tf.identity(one), computed, expand_composites=True)


def _write(session: Session, target: Any, pairs: list[tuple[Any, Any]]) -> None:
    session.check_start()
    losses = [tf.reduce_sum(part) for part in tf.nest.flatten(target)]
    loss = losses[0] if len(losses) == 1 else tf.add_n(losses)
    if tf.executing_eagerly():
        session.look_at_step(loss, [variable for variable, _ in pairs])
        session.record_loss(loss.numpy())
    else:
        session.look_at_graph(tf.compat.v1.get_default_graph(), loss)
        tf.numpy_function(session.record_loss, [loss], [], stateful=True)
    session.ask([variable for variable, _ in pairs], [value for _, value in pairs])


def _apply(session: Session, optimizer: Any, grads_and_vars: Any) -> list[tuple[Any, Any]]:
    """Records what an optimizer applies."""
    pairs = list(grads_and_vars)
    known = [(session.name_of(variable), gradient) for gradient, variable in pairs if gradient is not None]
    session.apply(optimizer, [name for name, _ in known], [gradient for _, gradient in known])
    return pairs
