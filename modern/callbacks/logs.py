"""Lines in the log: tensors every N steps, steps per second, and the loss that is not a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress, Timer
from estimator_bridge.modern.callbacks.summaries import writer_for
from estimator_bridge.modern.transplant import Transplant

logging = tf.compat.v1.logging


class TensorLogger(Callback):
    """Logs tensors at the first step and at the timer's cadence from there.

    Args:
        tensors: tag -> graph tensor.
        timer: when.
        formatter: values by tag -> the line; None for ``tag = value, ...``.
    """

    def __init__(self, tensors: Mapping[str, Any], timer: Timer, formatter: Callable[..., str] | None = None) -> None:
        self._tensors = dict(tensors)
        self._timer = timer
        self._formatter = formatter
        self.report = tuple(self._tensors.values())

    def begin(self, transplant: Transplant, step: int) -> None:
        """Makes the first step the first to log."""
        self._first = True

    def next_stop(self, step: int) -> int | None:
        """The first step, then the timer's."""
        return step + 1 if self._first else self._timer.next_stop()

    def after(self, progress: Progress) -> bool:
        """Logs if it is time and the values are there."""
        there = all(tensor.name in progress.report for tensor in self._tensors.values())
        if there and (self._first or self._timer.due(progress.step)):
            first, self._first = self._first, False
            _, seconds = self._timer.restart(progress.step)
            values = {tag: progress.report[tensor.name] for tag, tensor in self._tensors.items()}
            self._log(values, None if first else seconds)
        return False

    def _log(self, values: dict[str, Any], seconds: float | None) -> None:
        if self._formatter:
            logging.info("%s", self._formatter(values))
        else:
            line = ", ".join(f"{tag} = {value}" for tag, value in values.items())
            logging.info("%s", line if seconds is None else f"{line} ({seconds:.3f} sec)")


class LossLogger(Callback):
    """Logs ``loss`` and ``step``, the global step before the update, every N steps from the first."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._timer = Timer(steps=every)

    def begin(self, transplant: Transplant, step: int) -> None:
        """Makes the first step the first to log."""
        self._timer.restart(step + 1 - self._every)
        self._first = True

    def next_stop(self, step: int) -> int | None:
        """The first step, then every N."""
        return self._timer.next_stop()

    def after(self, progress: Progress) -> bool:
        """Logs if it is time."""
        if self._timer.due(progress.step):
            _, seconds = self._timer.restart(progress.step)
            took = "" if self._first else f" ({seconds:.3f} sec)"
            self._first = False
            logging.info("loss = %s, step = %s%s", progress.losses[-1], progress.step - 1, took)
        return False


class StepCounter(Callback):
    """Logs steps per second and writes them as the summary ``global_step/sec``, every N steps after the first."""

    def __init__(self, timer: Timer, folder: str | None) -> None:
        self._timer = timer
        self._folder = folder

    def begin(self, transplant: Transplant, step: int) -> None:
        """The first step, with its tracing, does not count."""
        self._first = True
        self._writer = writer_for(self._folder, transplant.model.graph) if self._folder else None

    def next_stop(self, step: int) -> int | None:
        """The first step, then every N."""
        return step + 1 if self._first else self._timer.next_stop()

    def after(self, progress: Progress) -> bool:
        """Logs if it is time."""
        if self._first:
            self._first = False
            self._timer.restart(progress.step)
        elif self._timer.due(progress.step):
            steps, seconds = self._timer.restart(progress.step)
            logging.info("global_step/sec: %g", steps / seconds)
            if self._writer:
                value = tf.compat.v1.Summary.Value(tag="global_step/sec", simple_value=steps / seconds)
                self._writer.add_summary(tf.compat.v1.Summary(value=[value]), progress.step)
        return False


class NanGuard(Callback):
    """Ends the training when the loss is not a number, before such values are saved."""

    def __init__(self, fail: bool = True) -> None:
        self._fail = fail

    def after(self, progress: Progress) -> bool:
        """Raises NanLossDuringTrainingError, or asks to stop, as NanTensorHook was told to."""
        if not np.isnan(progress.losses).any():
            return False
        logging.error("Model diverged with loss = NaN.")
        if self._fail:
            raise tf.compat.v1.train.NanLossDuringTrainingError
        return True
