"""Names that NumPy and Python dropped since TensorFlow 1's days: ``check`` reports them, ``run`` answers them."""

from __future__ import annotations

from typing import NamedTuple

RESTORED = "restored:"
"""Starts the targets that are no name of today's libraries: keys for what ``run`` brings itself."""


class Removed(NamedTuple):
    """What became of a name.

    Attributes:
        target: Dotted name of what means the same today, or ``RESTORED`` and a key; empty if there is nothing.
        note: what a reader has to know; for a name without a target, what to do instead.
    """

    target: str
    note: str = ""
