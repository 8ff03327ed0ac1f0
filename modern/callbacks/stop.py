"""Callbacks that end the training: at a step, or by a predicate."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager import context

from estimator_bridge.compat.config.output.callback_rules import stop_step
from estimator_bridge.modern.callbacks.at_steps import HookAtSteps
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.step.transplant import Transplant


class StopAtStep(Callback):
    """Stops after ``steps`` steps of this run, or at the absolute global step ``last``."""

    def __init__(self, steps: int | None, last: int | None) -> None:
        self._steps = steps
        self._last = last

    def begin(self, transplant: Transplant, step: int) -> None:
        """Computes the last step."""
        self._stop_at = stop_step(step, self._steps, self._last)

    def next_stop(self, step: int) -> int | None:
        """Returns the last step."""
        return self._stop_at

    def after(self, progress: Progress) -> bool:
        """Returns True from the last step on."""
        return self._stop_at is not None and progress.step >= self._stop_at


class StopOnPredicate(HookAtSteps):
    """Runs the hooks of ``stop_if_*`` and ``make_early_stopping_hook`` of ``tf.estimator.experimental`` at their steps.

    The hook is TensorFlow's own, and sets the variable ``signal_early_stopping/STOP`` for other workers.
    """

    def next_stop(self, step: int) -> int | None:
        """Returns one step more than other hooks: this hook's timer counts the global step before each run."""
        due = super().next_stop(step)
        return due if due is None or self._hook._timer.last_triggered_step() is None else due + 1

    def _session_of(self, transplant: Transplant) -> Any:
        return _Flag(transplant.variables[self._hook._stop_var.op.name])


class _Flag:
    """Session of the hook, which only sets its flag."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def run(self, fetches: Any) -> None:
        with context.eager_mode():
            self._variable.assign(True)
