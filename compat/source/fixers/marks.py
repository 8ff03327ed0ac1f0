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


class Marking(cst.CSTTransformer):
    """A transformer that puts comments above the statements that contain what stays.

    Attributes:
        changed: The new statement for each old one that was left.
    """

    def __init__(self) -> None:
        super().__init__()
        self._marks: list[list[str]] = []
        self.changed: dict[cst.CSTNode, cst.CSTNode] = {}

    def mark(self, comment: str) -> None:
        """Puts a comment above the innermost statement that is being visited."""
        subject = comment.partition(" stays: ")[0]
        if self._marks and not any(one.startswith(f"{subject} stays: ") for one in self._marks[-1]):
            self._marks[-1].append(comment)

    def keep(self, comment: str) -> None:
        """Puts a comment of the script above the innermost statement that is being visited."""
        if self._marks:
            self._marks[-1].append(comment)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Begins a statement."""
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            self._marks.append([])
        return super().on_visit(node)

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        """Ends a statement: puts its comments above it."""
        left = super().on_leave(original_node, updated_node)
        if isinstance(original_node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            marks = self._marks.pop()
            if marks and isinstance(left, cst.SimpleStatementLine | cst.BaseCompoundStatement):
                there = [line.comment.value for line in left.leading_lines if line.comment]
                lines = [cst.EmptyLine(comment=cst.Comment(mark)) for mark in marks if mark not in there]
                left = left.with_changes(leading_lines=[*left.leading_lines, *lines])
            if isinstance(left, cst.CSTNode):
                self.changed[original_node] = left
        return left  # type: ignore[return-value]
