"""Operations of ``tf.contrib.framework`` on variables."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def zero_initializer(ref: Any, name: str | None = None) -> Any:
    """Assigns zeros to a variable."""
    return tf.assign(ref, tf.zeros_like(ref), name=name)
