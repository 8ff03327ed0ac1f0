"""Exports whose variables go from the checkpoint into the SavedModel part by part, so that they need not fit into memory."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph.model_graph import v1
from estimator_bridge.modern.graph.savers import SavedTensor, saved_tensors, unlike
from estimator_bridge.modern.step.checkpoints import copy_tensors
from estimator_bridge.runtime.patching import wrapped


@contextlib.contextmanager
def copied_variables() -> Iterator[None]:
    """While active, Estimators copy the variables that they export from the checkpoint.

    An Estimator restores all variables into a session, only to save them again by the same Saver. A Saver that is no plain one of
    variables, and a checkpoint that does not fit the model, are still left to the session and its errors.
    """
    from tensorflow_estimator.python.estimator import estimator as estimator_lib

    with contextlib.ExitStack() as patches:

        def call_model_fn(original: Any, *args: Any, **kwargs: Any) -> Any:
            spec = original(*args, **kwargs)
            if spec.scaffold.saver is None:
                spec.scaffold._saver = v1.train.Saver(sharded=True)  # the one that an export makes
            if type(spec.scaffold.saver) is v1.train.Saver:
                patches.enter_context(_copying(spec.scaffold.saver, v1.get_default_graph()))
            return spec

        patches.enter_context(wrapped(estimator_lib.Estimator, _call_model_fn=call_model_fn))
        yield


def _copying(saver: Any, graph: Any) -> contextlib.AbstractContextManager[None]:
    """Lets a Saver that restores a checkpoint, and then saves, copy it."""
    sources: dict[str, Sequence[SavedTensor]] = {}

    def restore(original: Any, session: Any, path: str) -> None:
        saved = _copied(saver, graph, path)
        if saved:
            sources[path] = saved
        else:
            original(session, path)

    def save(original: Any, session: Any, prefix: str, **options: Any) -> Any:
        if not sources:
            return original(session, prefix, **options)
        ((path, saved),) = sources.items()
        with context.eager_mode():
            copy_tensors(path, saved, prefix)
        return prefix

    return wrapped(saver, restore=restore, save=save)


def _copied(saver: Any, graph: Any, path: str) -> Sequence[SavedTensor]:
    """Returns the tensors that a Saver would read and write; none if only a session can do so."""
    with contextlib.suppress(NotSupportedError, tf.errors.OpError):
        saved = saved_tensors(graph, saver)
        return [] if unlike(path, saved) else saved
    return []
