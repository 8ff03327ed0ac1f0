"""Base class of the callbacks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras


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
