"""The number of training steps after which a comparison has seen enough of a script."""

from __future__ import annotations

import sys


class StepLimit:
    """Counts the training steps of a side.

    The training that reaches the limit ends there. What the script does after it, such as an evaluation, is compared, up to its next
    training, which ends the script.

    Args:
        steps: Number of steps; None for no limit.

    Attributes:
        taken: Number of steps so far.

    Example:
        >>> limit = StepLimit(2)
        >>> limit.take(), limit.take()
        (False, True)
    """

    def __init__(self, steps: int | None) -> None:
        self._steps = steps
        self.taken = 0

    def take(self, steps: int = 1) -> bool:
        """Counts steps, and returns True if the training must end."""
        self.taken += steps
        return self.is_reached

    @property
    def is_reached(self) -> bool:
        """True if no step may follow."""
        return self.left == 0

    @property
    def left(self) -> int | None:
        """Number of steps that may follow; None for no limit."""
        return None if self._steps is None else max(0, self._steps - self.taken)

    def reach(self) -> None:
        """Makes the present step, or the next one, the last."""
        self._steps = max(1, self.taken)

    def end_script(self) -> None:
        """Ends the script, as ``sys.exit()`` does, if the limit is reached; call it where a training begins."""
        if self.is_reached:
            sys.exit(0)
