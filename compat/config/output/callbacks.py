"""Keras callbacks in place of session hooks; a printed script contains the source of those that it needs."""

import math
import time
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.compat.config.output.callback_rules import Timer, has_nan, stop_step


class StepCallback(tf_keras.callbacks.Callback):
    """Callback that counts by the global step."""

    def __init__(self) -> None:
        super().__init__()
        self._supports_tf_logs = True  # Keras requires it under ParameterServerStrategy, whose values arrive later

    @property
    def step(self) -> int:
        """Global step: the optimizer's count of updates, restored ones included."""
        return int(self.model.optimizer.iterations.numpy())

    @staticmethod
    def numbers(logs: Any) -> dict[str, float]:
        """Returns logs as numbers; values on a parameter server are fetched."""
        return {name: float(value.fetch() if hasattr(value, "fetch") else value) for name, value in (logs or {}).items()}

    def write(self, writer: Any, values: Any) -> None:
        """Writes scalars; tf.summary.scalar would require TensorBoard."""
        metadata = tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": "scalars"})
        with writer.as_default(step=self.step):
            for name, value in self.numbers(values).items():
                tf.summary.write(name, tf.constant(value, tf.float32), metadata=metadata)
        writer.flush()


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


class Evaluate(StepCallback):
    """InMemoryEvaluatorHook and EvalSpec: evaluates every so many steps or at an epoch's end, at most every throttle_secs."""

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
        self.start_delay_secs, self.throttle_secs, self.log_dir = start_delay_secs, throttle_secs, log_dir
        self.writer = tf.summary.create_file_writer(log_dir) if log_dir else None

    def on_train_begin(self, logs: Any = None) -> None:
        """Delays the first evaluation."""
        self._not_before = time.monotonic() + self.start_delay_secs
        self.timer.restart(self.step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Evaluates if the timer is due."""
        if self.timer.every_steps and self.timer.fire(self.step):
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


class StopByEvaluations(StepCallback):
    """Base of callbacks that decide after each evaluation whether to stop; earlier runs in eval_dir count, too."""

    def __init__(self, monitor: str, min_steps: int = 0, eval_dir: str | None = None) -> None:
        super().__init__()
        self.monitor, self.min_steps, self.eval_dir = monitor, min_steps, eval_dir
        self.seen: dict[int, float] = {}

    def on_train_begin(self, logs: Any = None) -> None:
        """Reads the evaluations of earlier runs."""
        files = tf.io.gfile.glob(f"{self.eval_dir}/*.tfevents.*") if self.eval_dir else []
        for event in (event for file in files for event in tf.compat.v1.train.summary_iterator(file)):
            for value in event.summary.value:
                if value.tag == self.monitor:
                    tensor = value.HasField("tensor")
                    self.seen[event.step] = float(tf.make_ndarray(value.tensor)) if tensor else value.simple_value

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Stops if ``enough`` says so."""
        value = self.numbers(logs).get(f"val_{self.monitor}")
        if value is not None:
            self.seen[self.step] = value
            self.model.stop_training = self.model.stop_training or self.enough(
                [(step, self.seen[step]) for step in sorted(self.seen) if step >= self.min_steps]
            )

    def enough(self, found: list[tuple[int, float]]) -> bool:
        """Returns True if these evaluations, pairs of step and value, end the training."""
        raise NotImplementedError


class StopAtThreshold(StopByEvaluations):
    """stop_if_higher_hook and stop_if_lower_hook: stops once validation has passed a threshold."""

    def __init__(self, monitor: str, threshold: float, mode: str, min_steps: int = 0, eval_dir: str | None = None) -> None:
        super().__init__(monitor, min_steps, eval_dir)
        self.threshold, self.mode = threshold, mode

    def enough(self, found: list[tuple[int, float]]) -> bool:
        """Returns True past the threshold."""
        return any(value > self.threshold if self.mode == "max" else value < self.threshold for _, value in found)


class StopWithoutImprovement(StopByEvaluations):
    """stop_if_no_increase_hook and stop_if_no_decrease_hook: stops so many steps after the best evaluation."""

    def __init__(self, monitor: str, max_steps: int, mode: str, min_steps: int = 0, eval_dir: str | None = None) -> None:
        super().__init__(monitor, min_steps, eval_dir)
        self.max_steps, self.mode = max_steps, mode

    def enough(self, found: list[tuple[int, float]]) -> bool:
        """Returns True if none of the last max_steps was the best."""
        best: tuple[int, float] | None = None
        for step, value in found:
            if best is None or (value > best[1] if self.mode == "max" else value < best[1]):
                best = step, value
            if step - best[0] >= self.max_steps:
                return True
        return False


class Export(StepCallback):
    """FinalExporter, LatestExporter and BestExporter: writes a SavedModel, and removes old ones."""

    def __init__(self, directory: str, when: str, exports_to_keep: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        self.directory, self.when, self.exports_to_keep, self.last_step = directory, when, exports_to_keep, last_step
        self.best = math.inf

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Exports the latest or the best model after an evaluation within training."""
        if "val_loss" in (logs or {}):
            self._evaluated(self.numbers(logs)["val_loss"])

    def on_test_end(self, logs: Any = None) -> None:
        """Exports in an evaluator's process, where the last step gives the final export."""
        self._evaluated(self.numbers(logs).get("loss", math.inf))
        if self.when == "end" and self.last_step is not None and self.step >= self.last_step:
            self._export()

    def on_train_end(self, logs: Any = None) -> None:
        """Exports the final model."""
        if self.when == "end":
            self._export()

    def _evaluated(self, loss: float) -> None:
        if self.when == "latest" or (self.when == "best" and loss < self.best):
            self.best = loss
            self._export()

    def _export(self) -> None:
        """Exports to a folder named by the time, as an Estimator does, so that exports of earlier runs stay the older ones."""
        tf.io.gfile.makedirs(self.directory)
        names = (name.strip("/") for name in tf.io.gfile.listdir(self.directory))
        found = sorted(int(name) for name in names if name.isdecimal())
        found.append(max(int(time.time()), *(old + 1 for old in found)) if found else int(time.time()))
        tf.saved_model.save(self.model, f"{self.directory}/{found[-1]}")
        for old in found[: -self.exports_to_keep] if self.exports_to_keep else ():
            tf.io.gfile.rmtree(f"{self.directory}/{old}")


class Sidecar(StepCallback):
    """EvalSpec in an evaluator's process: writes each evaluation's results, and waits between two until the last step."""

    def __init__(self, log_dir: str, throttle_secs: float = 0.0, last_step: int | None = None) -> None:
        super().__init__()
        self.log_dir, self.throttle_secs, self.last_step = log_dir, throttle_secs, last_step
        self.writer = tf.summary.create_file_writer(log_dir)

    def on_test_begin(self, logs: Any = None) -> None:
        """Delays the next evaluation by throttle_secs from now."""
        self._next = time.monotonic() + self.throttle_secs

    def on_test_end(self, logs: Any = None) -> None:
        """Writes the results, and waits."""
        self.write(self.writer, logs)
        if self.last_step is None or self.step < self.last_step:
            time.sleep(max(self._next - time.monotonic(), 0.0))


class DelayedEvaluator(tf_keras.utils.SidecarEvaluator):
    """A SidecarEvaluator that waits before the first evaluation."""

    def __init__(self, *args: Any, start_delay_secs: float = 0.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.start_delay_secs = start_delay_secs

    def start(self) -> None:
        """Waits, then evaluates each checkpoint."""
        time.sleep(self.start_delay_secs)
        super().start()
