"""Saves checkpoints at the start, at the RunConfig's cadence and at the end, as TF1's CheckpointSaverHook does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Progress, Timer
from estimator_bridge.modern.checkpoints import CheckpointFolder, entries
from estimator_bridge.modern.transplant import Transplant

logging = tf.compat.v1.logging


class NoSession:
    """Stands where a CheckpointSaverListener expects its session: there is none, and using it says so."""

    def __getattr__(self, name: str) -> NoReturn:
        raise NotSupportedError(
            f"A CheckpointSaverListener uses session.{name}, and the modern path has no session.",
            expected="a listener that works with the global step and the saved files",
            fix="Rewrite the listener over tf.train.load_checkpoint, or use --path legacy.",
        )


class CheckpointSaver(Callback):
    """Saves, and tells the saving listeners.

    Args:
        config: the RunConfig: model_dir and how many to keep.
        timer: when.
        listeners: ``tf.train.CheckpointSaverListener`` objects.
    """

    def __init__(self, config: Any, timer: Timer, listeners: Sequence[Any]) -> None:
        self._config = config
        self._timer = timer
        self._listeners = listeners
        self._session = NoSession()

    def begin(self, transplant: Transplant, step: int) -> None:
        """Saves the state that training starts from."""
        self._folder = CheckpointFolder(entries(transplant), self._config)
        for listener in self._listeners:
            listener.begin()
        self._save(step)

    def next_stop(self, step: int) -> int | None:
        """The next save."""
        return self._timer.next_stop()

    def after(self, progress: Progress) -> bool:
        """Saves if it is time; True where a listener asks to stop."""
        return self._timer.due(progress.step) and self._save(progress.step)

    def end(self, step: int) -> None:
        """Saves the last step, unless it is saved already."""
        if step != self._timer.last:
            self._save(step)
        for listener in self._listeners:
            listener.end(self._session, step)

    def _save(self, step: int) -> bool:
        self._timer.restart(step)
        for listener in self._listeners:
            listener.before_save(self._session, step)
        logging.info("Saving checkpoint for step %d: %s", step, self._folder.save(step))
        stopping = [listener.after_save(self._session, step) for listener in self._listeners]  # every listener is told
        return any(stopping)
