"""Runs a hook of TensorFlow's that waits for steps and asks for nothing but the global step: at those steps, as it is."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.session import ReadOnlySession, calling
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.step.transplant import Transplant

v1 = tf.compat.v1


class HookAtSteps(Callback):
    """What the steps between see of the hook is nothing, so they run in bulk.

    Args:
        hook: has a ``SecondOrStepTimer``; its ``before_run`` asks for the global step alone.
        model: the graph, before it is finished.
    """

    def __init__(self, hook: Any, model: ModelGraph) -> None:
        self._hook = hook
        self._graph = model.graph
        with calling(self._graph):
            hook.begin()

    def begin(self, transplant: Transplant, step: int) -> None:
        """Gives the hook its session."""
        with calling(self._graph):
            self._session = self._session_of(transplant)
            self._hook.after_create_session(self._session, None)

    def next_stop(self, step: int) -> int | None:
        """The first step, unless the hook has begun to count already; then the timer's."""
        timer = self._hook._timer
        if timer.last_triggered_step() is None:
            return step + 1
        return None if timer._every_steps is None else int(timer.last_triggered_step() + timer._every_steps)

    def after(self, progress: Progress) -> bool:
        """Shows the hook the step; True where it asks to stop.

        Where its timer waits, it would read the global step and go: half of the time of a small step, where all of them are seen.
        """
        if not self._hook._timer.should_trigger_for_step(progress.step):
            return False
        run = v1.train.SessionRunContext(None, self._session)
        with calling(self._graph):
            self._hook.after_run(run, v1.train.SessionRunValues(progress.step - 1, None, None))
        return bool(run.stop_requested)

    def end(self, step: int) -> None:
        """Tells the hook."""
        with calling(self._graph):
            self._hook.end(self._session)

    def _session_of(self, transplant: Transplant) -> ReadOnlySession:
        return ReadOnlySession(transplant.model.graph, transplant.variables, transplant.operations)
