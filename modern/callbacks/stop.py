"""Ends the training: at a step, or when a predicate says so."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.session import calling
from estimator_bridge.modern.model_graph import ModelGraph
from estimator_bridge.modern.transplant import Transplant

v1 = tf.compat.v1


class StopAtStep(Callback):
    """Stops after ``steps`` steps of this run, or at the absolute global step ``last``."""

    def __init__(self, steps: int | None, last: int | None) -> None:
        self._steps = steps
        self._last = last

    def begin(self, transplant: Transplant, step: int) -> None:
        """Turns a number of steps into the step to end at."""
        self._stop_at = step + self._steps if self._last is None and self._steps is not None else self._last

    def next_stop(self, step: int) -> int | None:
        """The last step."""
        return self._stop_at

    def after(self, progress: Progress) -> bool:
        """True from the last step on."""
        return self._stop_at is not None and progress.step >= self._stop_at


class StopOnPredicate(Callback):
    """The hooks of ``tf.estimator.experimental``'s ``stop_if_*`` and ``make_early_stopping_hook``, at the steps they wait for.

    The hook is TensorFlow's own; what it writes, a variable ``signal_early_stopping/STOP`` for other workers to see, is written.

    Args:
        hook: what ``make_early_stopping_hook`` made.
        model: the graph, before it is finished.
    """

    def __init__(self, hook: Any, model: ModelGraph) -> None:
        self._hook = hook
        with calling(model.graph):
            hook.begin()

    def begin(self, transplant: Transplant, step: int) -> None:
        """Finds the variable."""
        self._flag = transplant.variables[self._hook._stop_var.op.name]

    def next_stop(self, step: int) -> int | None:
        """The step after the one that the hook's timer waits for: it looks at the global step before each run."""
        timer = self._hook._timer
        if timer.last_triggered_step() is None:
            return step + 1
        return None if timer._every_steps is None else timer.last_triggered_step() + timer._every_steps + 1

    def after(self, progress: Progress) -> bool:
        """Asks the predicate if it is time."""
        context = v1.train.SessionRunContext(None, _Flag(self._flag))
        self._hook.after_run(context, v1.train.SessionRunValues(progress.step - 1, None, None))
        return bool(context.stop_requested)


class _Flag:
    """All that the hook needs of a session: to raise its flag."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def run(self, fetches: Any) -> None:
        self._variable.assign(True)
