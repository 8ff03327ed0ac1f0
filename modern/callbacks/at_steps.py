"""Callbacks that act at certain steps: TensorFlow's hooks that have a timer, and the ends of a training."""

from typing import Any

from tensorflow.python.eager import context as eager_context

from estimator_bridge.compat.config.output.callback_rules import stop_step
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.session import script_environment
from estimator_bridge.modern.callbacks.session_hook import HookedRun
from estimator_bridge.modern.graph.model_graph import v1
from estimator_bridge.modern.step.transplant import Transplant


class HookAtSteps(Callback):
    """Runs a hook at its steps; steps in between run in bulk, since the hook does nothing there.

    Args:
        hook: Hook with a timer, whose ``before_run`` asks only for the global step, and for ``report`` at its steps.
        run: Run whose graph is not finished yet.
    """

    def __init__(self, hook: Any, run: HookedRun) -> None:
        self._hook = hook
        self._run = run
        self._graph = run.model.graph
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

    def needs_report(self, step: int) -> bool:
        """Returns True if the timer is due."""
        return bool(self._hook._timer.should_trigger_for_step(step))

    def after(self, progress: Progress) -> bool:
        """Calls the hook if its timer is due and the values are there; returns True if it asks to stop.

        A hook whose timer is not due would only read the global step, which takes half the time of a small step.
        """
        if not self.needs_report(progress.step) or any(tensor.name not in progress.report for tensor in self.report):
            return False
        context = v1.train.SessionRunContext(None, self._session)
        with script_environment(self._graph):
            self._hook.after_run(context, v1.train.SessionRunValues(self._results(progress), None, None))
        return bool(context.stop_requested)

    def _results(self, progress: Progress) -> Any:
        """Returns what the hook's ``before_run`` would have asked for: the global step before the update."""
        return progress.step - 1

    def end(self, step: int) -> None:
        """Calls the hook's ``end``."""
        with script_environment(self._graph):
            self._hook.end(self._session)

    def _session_of(self, transplant: Transplant) -> Any:
        self._run.open(transplant.variables, transplant.operations)
        return self._run.session


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
        with eager_context.eager_mode():
            self._variable.assign(True)
