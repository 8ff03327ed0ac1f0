"""Outcomes of a conversion, and the comment that marks a line which a human has to convert."""

from __future__ import annotations

import dataclasses
import enum

import libcst as cst

PREFIX = "# estimator-bridge: "


class Outcome(enum.Enum):
    """The outcome of the conversion for a line."""

    CONVERTED = "converted"
    APPROXIMATE = "approximate"
    """It computes nearly the same, or reports less."""
    HUMAN = "human"
    """It is as it was; a comment says why, and what to do."""


@dataclasses.dataclass(frozen=True, order=True)
class Change:
    """The outcome for one construct of the script.

    Attributes:
        line: Line in the old script, from 1.
        name: Name as users write it, e.g. ``tf.estimator.RunConfig``.
        outcome: Outcome for it.
        message: Reason, and what to do; may be empty if it was converted.
    """

    line: int
    name: str
    outcome: Outcome = dataclasses.field(compare=False)
    message: str = dataclasses.field(default="", compare=False)

    @property
    def comment(self) -> str:
        """The comment that marks the line in the new script."""
        return f"{PREFIX}{self.name} stays: {self.message}"


class UnconvertibleError(Exception):
    """A construct that a fixer does not know.

    Args:
        node: Node that stays as it is.
        name: Name as users write it.
        message: Reason, and what to do.
    """

    def __init__(self, node: cst.CSTNode, name: str, message: str) -> None:
        super().__init__(message)
        self.node = node
        self.name = name
        self.message = message
