"""The module ``trainer.model`` of docs/how-to/convert-checkpoints.md."""

from __future__ import annotations

from typing import Any

import tf_keras


def make() -> Any:
    """Returns an untrained model with one layer."""
    return tf_keras.Sequential([tf_keras.layers.Dense(2, input_shape=(1,), name="dense")])
