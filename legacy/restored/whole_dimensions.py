"""Whole floats as dimensions, which scripts compute by ``/``: ``tf.get_variable("kernel", [units / 2, 3])``.

What was removed: a whole float as a dimension, before TensorFlow 2.15. TensorFlow 1 took ``2.0`` for ``2``, and refused ``2.5``.

Needed by: scripts written for Python 2, where ``/`` gave an integer; TensorFlow 1 ran them on Python 3, too.
"""

import functools
from typing import Any


def restore() -> None:
    """Accepts whole floats as dimensions of variables, placeholders and shapes, unless TensorFlow does.

    Example:
        >>> restore()
        >>> import tensorflow as tf
        >>> tf.TensorShape([4 / 2, 3])
        TensorShape([2, 3])
    """
    from tensorflow.python.framework.tensor_shape import Dimension

    try:
        Dimension(2.0)
    except TypeError:
        Dimension.__init__ = _as_integer(Dimension.__init__)


def _as_integer(make: Any) -> Any:
    @functools.wraps(make)
    def make_dimension(self: Any, value: Any) -> None:
        make(self, int(value) if isinstance(value, float) and value.is_integer() else value)

    return make_dimension
