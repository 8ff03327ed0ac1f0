"""Names that NumPy, Python and TensorFlow removed since TensorFlow 1: ``check`` reports them, ``run`` replaces what it can."""

from typing import NamedTuple

RESTORED = "restored:"
"""Starts the targets that are no name of today's libraries: keys for what ``run`` brings itself."""


class Removed(NamedTuple):
    """The replacement of a removed name.

    Attributes:
        target: Dotted name of what means the same today, or ``RESTORED`` and a key; empty if nothing does.
        note: Advice to the reader; for a name without a target, the alternative.
    """

    target: str
    note: str = ""
