"""Names that NumPy and Python dropped since TensorFlow 1's days: ``check`` reports them, ``run`` answers them."""

from __future__ import annotations

from typing import NamedTuple


class Removed(NamedTuple):
    """What became of a name.

    Attributes:
        target: the dotted name of what means the same today; empty where nothing does.
        note: what a reader has to know; for a name without a target, what to do instead.
    """

    target: str
    note: str = ""
