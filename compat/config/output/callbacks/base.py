"""What callbacks of global steps share."""

from __future__ import annotations

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

    def __init__(self) -> None:
        super().__init__()
        self._supports_tf_logs = True  # else Keras refuses it under ParameterServerStrategy, whose values are still to come

    @property
    def step(self) -> int:
        """The optimizer's count of updates, restored ones included."""
        return int(self.model.optimizer.iterations.numpy())

    @staticmethod
    def numbers(logs: Any) -> dict[str, float]:
        """Logs as numbers; a parameter server's are fetched."""
        return {name: float(value.fetch() if hasattr(value, "fetch") else value) for name, value in (logs or {}).items()}

    def write(self, writer: Any, values: Any) -> None:
        """Writes scalars; tf.summary.scalar would need TensorBoard to be installed."""
        metadata = tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": "scalars"})
        with writer.as_default(step=self.step):
            for name, value in self.numbers(values).items():
                tf.summary.write(name, tf.constant(value, tf.float32), metadata=metadata)
        writer.flush()
