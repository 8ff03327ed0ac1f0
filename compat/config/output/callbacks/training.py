"""Callbacks for training steps."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_bridge.compat.config.output.callback_rules import Timer, has_nan, stop_step
from estimator_bridge.compat.config.output.callbacks.base import StepCallback


class StopAtStep(StepCallback):
    """StopAtStepHook: ends training at a global step, or after so many steps."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        self.num_steps, self.last_step = num_steps, last_step

    def on_train_begin(self, logs: Any = None) -> None:
        """Counts num_steps from the restored step."""
        self.last_step = stop_step(self.step, self.num_steps, self.last_step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Stops the training at the last step."""
        if self.last_step is not None and self.step >= self.last_step:
            self.model.stop_training = True


class SaveCheckpoint(StepCallback):
    """CheckpointSaverHook: saves at the start, every so many steps or seconds, and at the end."""

    def __init__(self, manager: Any, every_steps: int | None = None, every_secs: float | None = None) -> None:
        super().__init__()
        self.manager, self.timer = manager, Timer(every_steps, every_secs)

    def on_train_begin(self, logs: Any = None) -> None:
        """Saves the initial state."""
        self.timer.restart(self.step)
        self._save()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves if the timer is due."""
        if self.timer.fire(self.step):
            self._save()

    def on_train_end(self, logs: Any = None) -> None:
        """Saves the final state."""
        self._save()

    def _save(self) -> None:
        if not str(self.manager.latest_checkpoint).endswith(f"-{self.step}"):
            self.manager.save(checkpoint_number=self.step, check_interval=False)


class LogValues(StepCallback):
    """LoggingTensorHook, for the loss and the metrics."""

    def __init__(self, every_steps: int | None = None, every_secs: float | None = None, at_end: bool = False) -> None:
        super().__init__()
        self.timer, self.at_end = Timer(every_steps, every_secs), at_end

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Logs if the timer is due."""
        if self.timer.fire(self.step):
            tf.get_logger().info("step %d: %s", self.step, self.numbers(logs))

    def on_train_end(self, logs: Any = None) -> None:
        """Logs once more if ``at_end`` is set."""
        if self.at_end:
            tf.get_logger().info("step %d: %s", self.step, self.numbers(logs))


class WriteSummaries(StepCallback):
    """SummarySaverHook and StepCounterHook: writes scalars for TensorBoard, and the speed."""

    def __init__(
        self, log_dir: str, every_steps: int | None = None, every_secs: float | None = None, speed: bool = False
    ) -> None:
        super().__init__()
        self.log_dir, self.timer, self.speed = log_dir, Timer(every_steps, every_secs), speed
        self.writer = tf.summary.create_file_writer(log_dir)

    def on_train_begin(self, logs: Any = None) -> None:
        """Starts the timer."""
        self.timer.restart(self.step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes if the timer is due."""
        elapsed = self.timer.fire(self.step)
        if elapsed:
            steps, seconds = elapsed
            self.write(self.writer, {"global_step/sec": steps / max(seconds, 1e-9)} if self.speed else logs)


class StopOnNan(StepCallback):
    """NanTensorHook: raises or stops if the loss is not a number."""

    def __init__(self, fail: bool = True) -> None:
        super().__init__()
        self.fail = fail

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Checks the loss."""
        if has_nan([self.numbers(logs).get("loss", 0.0)]):
            if self.fail:
                raise FloatingPointError(f"The loss is NaN at step {self.step}.")
            self.model.stop_training = True


class Profile(StepCallback):
    """ProfilerHook: profiles one step every so many steps or seconds."""

    def __init__(self, log_dir: str, every_steps: int | None = None, every_secs: float | None = None) -> None:
        super().__init__()
        self.log_dir, self.timer, self.recording = log_dir, Timer(every_steps, every_secs), False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Starts profiling if the timer is due."""
        if self.timer.fire(self.step):
            tf.profiler.experimental.start(self.log_dir)
            self.recording = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes the profile."""
        if self.recording:
            tf.profiler.experimental.stop()
            self.recording = False
