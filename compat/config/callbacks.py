"""Keras callbacks for what session hooks did and Keras has no callback for; the printed Python carries the ones that it needs."""

from __future__ import annotations

import math
import time
from typing import Any

import tensorflow as tf
import tf_keras


class Timer:
    """Says when something is due again: every so many steps or seconds."""

    def __init__(self, every_steps: int | None = None, every_secs: float | None = None) -> None:
        self.every_steps, self.every_secs = every_steps, every_secs
        self._step, self._time = 0, time.monotonic()

    def start(self, step: int) -> None:
        """Counts from here on."""
        self._step, self._time = step, time.monotonic()

    def due(self, step: int) -> bool:
        """True once every period; counts anew from there."""
        steps = self.every_steps is not None and step - self._step >= self.every_steps
        secs = self.every_secs is not None and time.monotonic() - self._time >= self.every_secs
        if steps or secs:
            self.start(step)
        return steps or secs


class StepCallback(tf_keras.callbacks.Callback):
    """A callback that knows the global step."""

    @property
    def step(self) -> int:
        """The optimizer's count of updates, restored ones included."""
        return int(self.model.optimizer.iterations.numpy())

    def write(self, writer: Any, values: Any) -> None:
        """Writes scalars; tf.summary.scalar would need TensorBoard to be installed."""
        metadata = tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": "scalars"})
        with writer.as_default(step=self.step):
            for name, value in values.items():
                tf.summary.write(name, tf.constant(value, tf.float32), metadata=metadata)
        writer.flush()


class StopAtStep(StepCallback):
    """StopAtStepHook: ends training at a global step, or after so many steps."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        self.num_steps, self.last_step = num_steps, last_step

    def on_train_begin(self, logs: Any = None) -> None:
        """Counts num_steps from the restored step."""
        if self.last_step is None:
            self.last_step = self.step + (self.num_steps or 0)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Stops."""
        if self.step >= (self.last_step or 0):
            self.model.stop_training = True


class SaveCheckpoint(StepCallback):
    """CheckpointSaverHook: saves at the start, every so many steps or seconds, and at the end."""

    def __init__(self, manager: Any, every_steps: int | None = None, every_secs: float | None = None) -> None:
        super().__init__()
        self.manager, self.timer = manager, Timer(every_steps, every_secs)

    def on_train_begin(self, logs: Any = None) -> None:
        """Saves the initial state."""
        self.timer.start(self.step)
        self._save()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves when it is due."""
        if self.timer.due(self.step):
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
        """Logs when it is due."""
        if self.timer.due(self.step):
            tf.get_logger().info("step %d: %s", self.step, logs)

    def on_train_end(self, logs: Any = None) -> None:
        """Logs once more where that was asked for."""
        if self.at_end:
            tf.get_logger().info("step %d: %s", self.step, logs)


class WriteSummaries(StepCallback):
    """SummarySaverHook and StepCounterHook: writes scalars for TensorBoard, and the speed."""

    def __init__(
        self, log_dir: str, every_steps: int | None = None, every_secs: float | None = None, speed: bool = False
    ) -> None:
        super().__init__()
        self.writer, self.timer, self.speed = tf.summary.create_file_writer(log_dir), Timer(every_steps, every_secs), speed

    def on_train_begin(self, logs: Any = None) -> None:
        """Counts from here on."""
        self._last = self.step, time.monotonic()
        self.timer.start(self.step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes when it is due."""
        if self.timer.due(self.step):
            (step, then), now = self._last, time.monotonic()
            self._last = self.step, now
            values = {"global_step/sec": (self.step - step) / max(now - then, 1e-9)} if self.speed else dict(logs or {})
            self.write(self.writer, values)


class StopOnNan(StepCallback):
    """NanTensorHook: raises where the loss is no number, or stops."""

    def __init__(self, fail: bool = True) -> None:
        super().__init__()
        self.fail = fail

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Raises or stops."""
        if math.isnan((logs or {}).get("loss", 0.0)):
            if self.fail:
                raise FloatingPointError(f"The loss is NaN at step {self.step}.")
            self.model.stop_training = True


class Profile(StepCallback):
    """ProfilerHook: profiles one step every so many steps or seconds."""

    def __init__(self, log_dir: str, every_steps: int | None = None, every_secs: float | None = None) -> None:
        super().__init__()
        self.log_dir, self.timer, self.recording = log_dir, Timer(every_steps, every_secs), False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Starts when it is due."""
        if self.timer.due(self.step):
            tf.profiler.experimental.start(self.log_dir)
            self.recording = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Writes what was recorded."""
        if self.recording:
            tf.profiler.experimental.stop()
            self.recording = False


class Evaluate(StepCallback):
    """InMemoryEvaluatorHook and EvalSpec: evaluates every so many steps, or at an epoch's end, and no oftener than is allowed."""

    def __init__(
        self,
        data: Any,
        steps: int | None = None,
        every_steps: int | None = None,
        start_delay_secs: float = 0.0,
        throttle_secs: float = 0.0,
        log_dir: str | None = None,
    ) -> None:
        super().__init__()
        self.data, self.steps, self.timer = data, steps, Timer(every_steps)
        self.start_delay_secs, self.throttle_secs = start_delay_secs, throttle_secs
        self.writer = tf.summary.create_file_writer(log_dir) if log_dir else None

    def on_train_begin(self, logs: Any = None) -> None:
        """The first evaluation is due after the delay."""
        self._not_before = time.monotonic() + self.start_delay_secs
        self.timer.start(self.step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Evaluates when it is due by steps."""
        if self.timer.every_steps and self.timer.due(self.step):
            self._evaluate(None)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Evaluates at an epoch's end unless steps are counted."""
        if not self.timer.every_steps and time.monotonic() >= self._not_before:
            self._evaluate(logs)

    def _evaluate(self, logs: Any) -> None:
        self._not_before = time.monotonic() + self.throttle_secs
        results = self.model.evaluate(self.data, steps=self.steps, verbose=0, return_dict=True)
        if logs is not None:
            logs.update({f"val_{name}": value for name, value in results.items()})
        if self.writer is not None:
            self.write(self.writer, results)


class StopAtThreshold(StepCallback):
    """stop_if_higher_hook and stop_if_lower_hook: stops once validation has passed a threshold."""

    def __init__(self, monitor: str, threshold: float, mode: str, min_steps: int = 0) -> None:
        super().__init__()
        self.monitor, self.threshold, self.mode, self.min_steps = monitor, threshold, mode, min_steps

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Stops."""
        value = (logs or {}).get(self.monitor)
        if value is None or self.step < self.min_steps:
            return
        if (value > self.threshold) if self.mode == "max" else (value < self.threshold):
            self.model.stop_training = True


class Export(StepCallback):
    """FinalExporter, LatestExporter and BestExporter: writes a SavedModel, and removes old ones."""

    def __init__(self, directory: str, when: str, exports_to_keep: int | None = None) -> None:
        super().__init__()
        self.directory, self.when, self.exports_to_keep, self.best = directory, when, exports_to_keep, math.inf

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Exports the latest, or the best so far."""
        loss = (logs or {}).get("val_loss", math.inf)
        if self.when == "latest" or (self.when == "best" and loss < self.best):
            self.best = loss
            self._export()

    def on_train_end(self, logs: Any = None) -> None:
        """Exports the final one."""
        if self.when == "end":
            self._export()

    def _export(self) -> None:
        tf.saved_model.save(self.model, f"{self.directory}/{self.step}")
        if self.exports_to_keep:
            found = sorted(int(name.strip("/")) for name in tf.io.gfile.listdir(self.directory))
            for old in found[: -self.exports_to_keep]:
                tf.io.gfile.rmtree(f"{self.directory}/{old}")
