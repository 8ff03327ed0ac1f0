"""The switch between TF1's Dimension objects, which a script expects in shapes, and TF2's integers, for our code and Keras."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tensorflow.python.framework import tensor_shape

from estimator_bridge.runtime.patching import replaced

_scripts: list[bool | None] = []  # the script's own setting, for each nested call from it


@contextlib.contextmanager
def tf2_shapes() -> Iterator[None]:
    """While active, shapes behave as in TF2; ``script_shapes`` goes back to the script's own setting."""
    _scripts.append(_script_setting())
    try:
        with replaced(tensor_shape, _TENSORSHAPE_V2_OVERRIDE=True):
            yield
    finally:
        _scripts.pop()


def script_shapes() -> contextlib.AbstractContextManager[None]:
    """While active inside ``tf2_shapes``, shapes behave as the script expects in its model_fn and input_fn."""
    return replaced(tensor_shape, _TENSORSHAPE_V2_OVERRIDE=_script_setting())


def _script_setting() -> bool | None:
    setting: bool | None = _scripts[-1] if _scripts else tensor_shape._TENSORSHAPE_V2_OVERRIDE
    return setting
