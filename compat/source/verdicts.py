"""The verdicts of ``check`` on a line: it runs, the runner replaces it, or a human looks at it or changes it."""

from __future__ import annotations

import ast
import dataclasses
import enum


class Verdict(enum.Enum):
    """The consequence of a finding, best first."""

    RUNS = "runs"
    """As it is."""
    MENDED = "mended"
    """``estimator-bridge run`` replaces it, and says so."""
    LOOK = "look"
    """It does not stop the script, or the script does not reach it; a person should look at it."""
    HUMAN = "human"
    """A person has to change it."""


class Kind(enum.Enum):
    """The subject of a finding, and its title for readers; programs read the member's name in lower case."""

    TENSORFLOW = "TensorFlow"
    CONTRIB = "tf.contrib"
    NUMPY = "NumPy"
    PYTHON = "Python"
    PYTHON2 = "Python 2"
    PACKAGE = "packages"
    CLAIM = "not what it claims"
    """Code that does something else than it seems to do."""
    NOTEBOOK = "only for IPython"
    SYNTAX = "not Python"


@dataclasses.dataclass(frozen=True, order=True)
class SourceFinding:
    """One symbol in one place of a file.

    Attributes:
        line: Line number, from 1.
        column: Column number, from 1.
        symbol: Name as users write it: ``tf.layers.dense``, ``np.int``.
        kind: Subject of the finding.
        verdict: Consequence of the finding.
        message: Reason, and what to do.
    """

    line: int
    column: int
    symbol: str
    kind: Kind = dataclasses.field(compare=False)
    verdict: Verdict = dataclasses.field(compare=False)
    message: str = dataclasses.field(default="", compare=False)

    @classmethod
    def at(cls, node: ast.AST, symbol: str, kind: Kind, verdict: Verdict, message: str = "") -> SourceFinding:
        """Returns a finding in the place where a node starts, or in line 1 for a node without a place.

        Args:
            node: Node of a syntax tree.
            symbol: Name as users write it.
            kind: Subject of the finding.
            verdict: Consequence of the finding.
            message: Reason, and what to do.
        """
        return cls(getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, symbol, kind, verdict, message)
