"""Records of a training as TF1 makes them: log lines, TensorBoard event files, and a loss that is NaN."""

from typing import Any

import tensorflow as tf

from estimator_bridge.compat.config.output.callback_rules import Timer, has_nan
from estimator_bridge.modern.callbacks.at_steps import HookAtSteps
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.session import Request
from estimator_bridge.modern.callbacks.session_hook import HookedRun
from estimator_bridge.modern.step.transplant import Transplant

logging = tf.compat.v1.logging


class TensorLogger(HookAtSteps):
    """Runs a LoggingTensorHook, which logs tensors at the first step, then by its timer, and perhaps once more at the end."""

    def __init__(self, hook: Any, run: HookedRun) -> None:
        super().__init__(hook, run)
        self._request = Request(self._graph, hook._current_tensors)
        self.report = self._request.tensors if isinstance(hook._timer, tf.compat.v1.train.SecondOrStepTimer) else ()

    def begin(self, transplant: Transplant, step: int) -> None:
        """Gives the hook its session, and checks the tensors to log at the end.

        Raises:
            NotSupportedError: A tensor to log at the end would need another batch of several replicas.
        """
        super().begin(transplant, step)
        if self._hook._log_at_end and not self._run.is_free:
            with self._run.reader.caller("A LoggingTensorHook with at_end=True"):
                self._run.reader.check(self._hook._current_tensors)

    def next_stop(self, step: int) -> int | None:
        """Returns the first step, then the timer's next step; None if the hook logs only at the end."""
        return super().next_stop(step) if self.report else None

    def _results(self, progress: Progress) -> Any:
        self._hook._iter_count, self._hook._should_trigger = progress.step, True  # as its before_run does
        return self._request.results(progress.report)


class SummarySaver(HookAtSteps):
    """Runs a SummarySaverHook, which writes summaries at the first step, then by its timer."""

    def __init__(self, hook: Any, run: HookedRun) -> None:
        super().__init__(hook, run)
        hook._timer.reset()  # it may have counted in an earlier training
        self.report = hook._get_summary_op()

    def _results(self, progress: Progress) -> Any:
        self._hook._request_summary = True  # as its before_run does
        return {"global_step": progress.step - 1, "summary": [progress.report[tensor.name] for tensor in self.report]}


class LossLogger(Callback):
    """Logs ``loss`` and ``step``, the global step before the update, every N steps from the first on."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._timer = Timer(steps=every)

    def begin(self, transplant: Transplant, step: int) -> None:
        """Makes the first step the first to log."""
        self._timer.restart(step + 1 - self._every)
        self._first = True

    def next_stop(self, step: int) -> int | None:
        """Returns the first step, then every N-th."""
        return self._timer.next_stop()

    def after(self, progress: Progress) -> bool:
        """Logs if the timer is due and there is a loss."""
        elapsed = self._timer.fire(progress.step) if len(progress.losses) else None
        if elapsed:
            took = "" if self._first else f" ({elapsed[1]:.3f} sec)"
            self._first = False
            logging.info("loss = %s, step = %s%s", progress.losses[-1], progress.step - 1, took)
        return False


class NanGuard(Callback):
    """Ends the training if the loss is NaN, before such values are saved."""

    def __init__(self, fail: bool = True) -> None:
        self._fail = fail

    def after(self, progress: Progress) -> bool:
        """Raises NanLossDuringTrainingError, or stops if ``fail`` is False, as NanTensorHook does."""
        if not has_nan(progress.losses):
            return False
        logging.error("Model diverged with loss = NaN.")
        if self._fail:
            raise tf.compat.v1.train.NanLossDuringTrainingError
        return True
