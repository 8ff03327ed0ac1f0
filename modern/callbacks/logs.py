"""Records of a training as TF1 makes them: log lines, TensorBoard event files, and a loss that is NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.compat.config.output.callback_rules import Timer, has_nan
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.modern.step.transplant import Transplant

logging = tf.compat.v1.logging
_STARTED = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)  # TensorBoard drops what an earlier run wrote after it


class _Timed(Callback):
    """Base of callbacks that act at the first step, then by a timer."""

    _timer: Any
    _first = True

    def next_stop(self, step: int) -> int | None:
        """Returns the first step, then the timer's next step."""
        return step + 1 if self._first else self._timer.next_stop()

    def needs_report(self, step: int) -> bool:
        """Returns True at the first step, and if the timer is due."""
        return self._first or self._timer.is_due(step)

    def _open(self, folder: str, transplant: Transplant) -> Any:
        """Returns the event writer of a folder; a new one writes the graph for TensorBoard."""
        with transplant.model.graph.as_default():  # FileWriter cannot be made in eager mode
            return tf.compat.v1.summary.FileWriterCache.get(folder)


class TensorLogger(_Timed):
    """Logs tensors at the first step, then by a timer, and perhaps once more at the end.

    Args:
        tensors: Tag -> graph tensor.
        timer: Timer; None to log only at the end.
        formatter: Function from values by tag to the line; None for ``tag = value, ...``.
        at_end: True to log the values after the last step, too.
    """

    def __init__(
        self, tensors: dict[str, Any], timer: Timer | None, formatter: Callable[..., str] | None, at_end: bool
    ) -> None:
        self._tensors = tensors
        self._timer = timer
        self._formatter = formatter
        self._at_end = at_end
        self.report = tuple(tensors.values()) if timer else ()

    def begin(self, transplant: Transplant, step: int) -> None:
        """Checks the tensors to log at the end.

        Raises:
            NotSupportedError: A tensor to log at the end would need another batch.
        """
        self._session = ReadOnlySession(transplant.model.graph, transplant.variables, transplant.operations)
        if self._at_end:
            with self._session.caller("A LoggingTensorHook with at_end=True"):
                self._session.check(self._tensors)

    def next_stop(self, step: int) -> int | None:
        """Returns the first step, then the timer's next step; None without a timer."""
        return super().next_stop(step) if self._timer else None

    def after(self, progress: Progress) -> bool:
        """Logs if the timer is due and the values are there."""
        there = all(tensor.name in progress.report for tensor in self.report)
        if self._timer and there and self.needs_report(progress.step):
            self._log({tag: progress.report[tensor.name] for tag, tensor in self._tensors.items()}, progress.step)
        return False

    def end(self, step: int) -> None:
        """Logs the values after the last step."""
        if self._at_end:
            self._log(self._session.run(self._tensors), step)

    def _log(self, values: dict[str, Any], step: int) -> None:
        first, self._first = self._first, False
        seconds = self._timer.restart(step)[1] if self._timer else None
        elapsed = "" if first or seconds is None else f" ({seconds:.3f} sec)"
        with np.printoptions(suppress=True):
            line = ", ".join(f"{tag} = {value}" for tag, value in values.items())
            logging.info("%s", self._formatter(values) if self._formatter else line + elapsed)


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


class StepCounter(_Timed):
    """Logs steps per second and writes them as the summary ``global_step/sec``, every N steps after the first."""

    def __init__(self, timer: Timer, folder: str | None) -> None:
        self._timer = timer
        self._folder = folder

    def begin(self, transplant: Transplant, step: int) -> None:
        """Opens the event file; the first step, which is traced, is not measured."""
        self._writer = self._open(self._folder, transplant) if self._folder else None

    def after(self, progress: Progress) -> bool:
        """Logs if the timer is due."""
        if self._first:
            self._first = False
            self._timer.restart(progress.step)
        elif elapsed := self._timer.fire(progress.step):
            steps, seconds = elapsed
            logging.info("global_step/sec: %g", steps / seconds)
            if self._writer:
                value = tf.compat.v1.Summary.Value(tag="global_step/sec", simple_value=steps / seconds)
                self._writer.add_summary(tf.compat.v1.Summary(value=[value]), progress.step)
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


class SummarySaver(_Timed):
    """Writes a merged summary at the first step, then by a timer.

    Args:
        summary: Graph tensor of a serialized Summary.
        timer: Timer of the later summaries.
        folder: Folder of the event file.
    """

    def __init__(self, summary: Any, timer: Timer, folder: str) -> None:
        self._summary = summary
        self._timer = timer
        self._folder = folder
        self.report = (summary,)

    def begin(self, transplant: Transplant, step: int) -> None:
        """Opens the event file."""
        self._writer = self._open(self._folder, transplant)

    def after(self, progress: Progress) -> bool:
        """Writes if the timer is due."""
        if self._summary.name in progress.report and self.needs_report(progress.step):
            if self._first:
                self._writer.add_session_log(_STARTED, progress.step)
            self._first = False
            self._timer.restart(progress.step)
            self._writer.add_summary(progress.report[self._summary.name], progress.step)
        return False

    def end(self, step: int) -> None:
        """Writes all buffered events to disk."""
        self._writer.flush()
