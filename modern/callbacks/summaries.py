"""TensorBoard event files with the same tags and steps as TF1's."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.compat.config.output.callback_rules import Timer
from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.step.transplant import Transplant

_STARTED = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)  # TensorBoard drops what an earlier run wrote after it


def writer_for(folder: str, graph: Any) -> Any:
    """Returns the event writer of a folder; a new one writes ``graph`` for TensorBoard."""
    with graph.as_default():  # FileWriter cannot be made in eager mode
        return tf.compat.v1.summary.FileWriterCache.get(folder)


class SummarySaver(Callback):
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
        self._first = True
        self._writer = writer_for(self._folder, transplant.model.graph)

    def next_stop(self, step: int) -> int | None:
        """Returns the first step, then the timer's next step."""
        return step + 1 if self._first else self._timer.next_stop()

    def needs_report(self, step: int) -> bool:
        """Returns True at the first step, and if the timer is due."""
        return self._first or self._timer.is_due(step)

    def after(self, progress: Progress) -> bool:
        """Writes if the timer is due."""
        due = self._first or self._timer.is_due(progress.step)
        if due and self._summary.name in progress.report:
            if self._first:
                self._writer.add_session_log(_STARTED, progress.step)
            self._first = False
            self._timer.restart(progress.step)
            self._writer.add_summary(progress.report[self._summary.name], progress.step)
        return False

    def end(self, step: int) -> None:
        """Writes all buffered events to disk."""
        self._writer.flush()
