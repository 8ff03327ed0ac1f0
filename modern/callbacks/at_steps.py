"""Adapter for TensorFlow's hooks that act at certain steps and ask only for the global step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.session import ReadOnlySession, script_environment
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.step.transplant import Transplant

v1 = tf.compat.v1


class HookAtSteps(Callback):
    """Runs a hook at its steps; steps in between run in bulk, since the hook does nothing there.

    Args:
        hook: Hook with a ``SecondOrStepTimer``, whose ``before_run`` asks only for the global step.
        model: Model whose graph is not finished yet.
    """

    def __init__(self, hook: Any, model: ModelGraph) -> None:
        self._hook = hook
        self._graph = model.graph
        with script_environment(self._graph):
            hook.begin()

    def begin(self, transplant: Transplant, step: int) -> None:
        """Gives the hook its session."""
        with script_environment(self._graph):
            self._session = self._session_of(transplant)
            self._hook.after_create_session(self._session, None)

    def next_stop(self, step: int) -> int | None:
        """Returns the first step, or the timer's next step once the hook counts."""
        timer = self._hook._timer
        if timer.last_triggered_step() is None:
            return step + 1
        return None if timer._every_steps is None else int(timer.last_triggered_step() + timer._every_steps)

    def after(self, progress: Progress) -> bool:
        """Calls the hook if its timer is due; returns True if it asks to stop.

        A hook whose timer is not due would only read the global step, which takes half the time of a small step.
        """
        if not self._hook._timer.should_trigger_for_step(progress.step):
            return False
        run = v1.train.SessionRunContext(None, self._session)
        with script_environment(self._graph):
            self._hook.after_run(run, v1.train.SessionRunValues(progress.step - 1, None, None))
        return bool(run.stop_requested)

    def end(self, step: int) -> None:
        """Calls the hook's ``end``."""
        with script_environment(self._graph):
            self._hook.end(self._session)

    def _session_of(self, transplant: Transplant) -> ReadOnlySession:
        return ReadOnlySession(transplant.model.graph, transplant.variables, transplant.operations)
