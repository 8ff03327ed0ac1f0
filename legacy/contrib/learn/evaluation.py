"""What evaluates and exports while an Experiment trains."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


class EvaluateNewCheckpoints(tf.train.SessionRunHook):
    """Evaluates during training, in the same process, whenever a new checkpoint is found.

    Args:
        evaluate: without arguments.
        model_dir: where the checkpoints are.
        every_n_steps: how often it is looked for them, at most.
        check_interval_secs: likewise, in seconds.
    """

    def __init__(
        self, evaluate: Callable[[], Any], model_dir: str, every_n_steps: int, check_interval_secs: float | None
    ) -> None:
        self._evaluate, self._model_dir = evaluate, model_dir
        self._every_n_steps, self._interval = every_n_steps, check_interval_secs
        self._last_active_step = 0
        self._last_check: float | None = None
        self._last_path: str | None = None

    def begin(self) -> None:
        """Called by the session."""
        self._step: int | None = None
        self._global_step = tf.train.get_global_step()

    def before_run(self, run_context: Any) -> Any:
        """Called by the session."""
        if self._step is None:
            self._step = run_context.session.run(self._global_step) + 1
        return tf.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Called by the session."""
        step, self._step = self._step or 0, run_values.results + 1
        if step >= self._last_active_step + self._every_n_steps:
            self._last_active_step = step
            self._look()

    def _look(self) -> None:
        now = time.time()
        if self._interval is not None and self._last_check is not None and now - self._last_check <= self._interval:
            return
        self._last_check = now
        path = tf.train.latest_checkpoint(self._model_dir)
        if path is not None and path != self._last_path:
            self._last_path = path
            tf.logging.info("Validation at %s: %s", path, self._evaluate())


class EvaluateAndExportSaved(tf.train.CheckpointSaverListener):
    """Evaluates and exports each checkpoint as soon as it is saved.

    Args:
        evaluate: of ``name`` and ``checkpoint_path``.
        export: of the result and ``checkpoint_path``.
        model_dir: where the checkpoints are.

    Attributes:
        eval_result: the last one.
        export_results: likewise.
    """

    def __init__(self, evaluate: Callable[..., Any], export: Callable[..., Any], model_dir: str) -> None:
        self._evaluate, self._export, self._model_dir = evaluate, export, model_dir
        self._last_path: str | None = None
        self.eval_result: Any = None
        self.export_results: Any = None

    def after_save(self, session: Any, global_step_value: int) -> None:
        """Called by the saver's hook."""
        path = tf.train.latest_checkpoint(self._model_dir)
        if not path or path == self._last_path:
            tf.logging.warning("Skipping evaluation and export: there is no new checkpoint in %s.", self._model_dir)
            return
        self._last_path = path
        self.eval_result = self._evaluate(name="intermediate_export", checkpoint_path=path)
        self.export_results = self._export(self.eval_result, checkpoint_path=path)
