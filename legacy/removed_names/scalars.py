"""Prints NumPy's scalars as numbers, as before NumPy 2: scripts read a printed evaluation such as ``{'loss': 0.5}`` back in."""

from __future__ import annotations

import contextlib

import numpy as np


def print_scalars_as_numbers() -> contextlib.AbstractContextManager[object]:
    """While active, in the thread that entered it, ``repr(np.float32(0.5))`` is ``0.5`` and not ``np.float32(0.5)``."""
    if int(np.__version__.partition(".")[0]) < 2:
        return contextlib.nullcontext()
    return np.printoptions(legacy="1.25")
