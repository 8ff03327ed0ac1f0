"""The protocol of a callback: it names the steps that it needs to see, and everything between them runs in bulk."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimator_bridge.modern.step.transplant import Transplant


@dataclasses.dataclass(frozen=True)
class Progress:
    """Some consecutive steps that have just run.

    Attributes:
        step: the global step after the last of them.
        losses: float32, one a step; those of steps that a worker made before it was lost are missing, perhaps all.
        digests: int64, one a step: what the batches were (0 where batches are not audited).
        report: graph tensor's name -> its value at the last step; empty unless a callback asked.
    """

    step: int
    losses: np.ndarray
    digests: np.ndarray
    report: Mapping[str, Any]


class Callback:
    """Does nothing, at no step; subclasses say otherwise.

    Attributes:
        report: graph tensors whose values it needs at each step where it stops; may grow in ``before``.
        every_step: steps must run one by one.
    """

    report: Sequence[Any] = ()
    every_step = False

    def begin(self, transplant: Transplant, step: int) -> None:
        """Called once, before the first step; ``step`` is the global step so far."""

    def next_stop(self, step: int) -> int | None:
        """The first global step after ``step`` at whose end ``after`` must be called; None where any will do."""
        return None

    def asks(self, step: int) -> bool:
        """Where steps run one by one: whether ``report`` is needed of the next one, which makes the global step ``step``."""
        return True

    def before(self) -> None:
        """Called whenever steps are about to run."""

    def after(self, progress: Progress) -> bool:
        """Called whenever steps have run, at each of its stops at the latest.

        Returns:
            True to end the training.
        """
        return False

    def end(self, step: int) -> None:
        """Called once, after the last step."""
