"""Protocol of a callback: it names the steps at which it acts, and the steps in between run in bulk."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimator_bridge.modern.step.transplant import Transplant


@dataclasses.dataclass(frozen=True)
class Progress:
    """Consecutive steps that have just run.

    Attributes:
        step: Global step after the last of them.
        losses: Loss of each step, float32; losses of a worker that was lost are missing, perhaps all.
        digests: Digest of each step's batch, int64; 0 for batches that are not audited.
        report: Name of a graph tensor -> its value at the last step; empty unless a callback asked for it.
    """

    step: int
    losses: np.ndarray
    digests: np.ndarray
    report: Mapping[str, Any]


class Callback:
    """Base of callbacks, which does nothing at any step.

    Attributes:
        report: Graph tensors whose values the callback needs at its steps; may grow in ``before``.
        every_step: True if steps must run one by one.
        demand: Operations, tensors and feeds that the callback adds to the next step, a ``Request``; None without any.
    """

    report: Sequence[Any] = ()
    every_step = False
    demand: Any = None

    def begin(self, transplant: Transplant, step: int) -> None:
        """Prepares for the first step; called once, with the global step so far."""

    def next_stop(self, step: int) -> int | None:
        """Returns the next global step at whose end ``after`` must be called; None if any step will do."""
        return None

    def needs_report(self, step: int) -> bool:
        """Returns True if the callback needs ``report`` of the step that leads to ``step``; asked if steps run one by one."""
        return True

    def before(self) -> None:
        """Prepares for the next steps; called whenever steps are about to run."""

    def after(self, progress: Progress) -> bool:
        """Handles steps that have run; called at each of the callback's stops, and perhaps before.

        Returns:
            True to end the training.
        """
        return False

    def end(self, step: int) -> None:
        """Finishes; called once, after the last step."""
