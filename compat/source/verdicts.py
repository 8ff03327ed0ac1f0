"""What ``check`` says of a line: it runs, the runner mends it, or it needs a human."""

from __future__ import annotations

import dataclasses
import enum


class Verdict(enum.Enum):
    """Best first."""

    RUNS = "runs"
    """As it is."""
    MENDED = "mended"
    """``estimator-bridge run`` answers it, and says so."""
    HUMAN = "human"
    """Somebody has to look."""


class Kind(enum.Enum):
    """What a finding is about."""

    TENSORFLOW = "tensorflow"
    CONTRIB = "contrib"
    NUMPY = "numpy"
    PYTHON = "python"
    PYTHON2 = "python2"
    CLAIM = "claim"
    """Code that is not what it says it is, or does not do what it seems to do."""
    SYNTAX = "syntax"


@dataclasses.dataclass(frozen=True, order=True)
class SourceFinding:
    """One thing that a file says in one place.

    Attributes:
        line: from 1.
        column: from 1.
        symbol: the name as it is known: ``tf.layers.dense``, ``np.int``.
        kind: what it is about.
        verdict: what becomes of it.
        message: why, and what to do.
    """

    line: int
    column: int
    symbol: str
    kind: Kind = dataclasses.field(compare=False)
    verdict: Verdict = dataclasses.field(compare=False)
    message: str = dataclasses.field(default="", compare=False)
