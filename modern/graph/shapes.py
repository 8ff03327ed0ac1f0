"""The switch between TF1's Dimension objects, which a script expects in shapes, and TF2's integers, for our code and Keras."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tensorflow.python.framework import tensor_shape

_scripts: list[bool | None] = []  # the script's own setting, for each nested call from it


@contextlib.contextmanager
def tf2_shapes() -> Iterator[None]:
    """While active, shapes behave as in TF2; ``script_shapes`` goes back to the script's own setting."""
    before = tensor_shape._TENSORSHAPE_V2_OVERRIDE
    _scripts.append(_scripts[-1] if _scripts else before)
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = True
    try:
        yield
    finally:
        tensor_shape._TENSORSHAPE_V2_OVERRIDE = before
        _scripts.pop()


@contextlib.contextmanager
def script_shapes() -> Iterator[None]:
    """While active inside ``tf2_shapes``, shapes behave as the script expects in its model_fn and input_fn."""
    before = tensor_shape._TENSORSHAPE_V2_OVERRIDE
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = _scripts[-1] if _scripts else before
    try:
        yield
    finally:
        tensor_shape._TENSORSHAPE_V2_OVERRIDE = before
