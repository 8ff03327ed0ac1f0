"""TensorShape as the code at hand expects it: TF1's Dimension objects for a TF1 script, TF2's integers for ours and Keras'."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tensorflow.python.framework import tensor_shape

_scripts: list[bool | None] = []  # what the script runs with, for each nested call out of it


@contextlib.contextmanager
def tf2_shapes() -> Iterator[None]:
    """While active, shapes behave as in TF2; ``script_shapes`` knows how they behaved before."""
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
    """Inside ``tf2_shapes``: back to what the script runs with, while its model_fn or input_fn is called."""
    before = tensor_shape._TENSORSHAPE_V2_OVERRIDE
    tensor_shape._TENSORSHAPE_V2_OVERRIDE = _scripts[-1] if _scripts else before
    try:
        yield
    finally:
        tensor_shape._TENSORSHAPE_V2_OVERRIDE = before
