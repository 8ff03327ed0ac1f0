"""The number of training steps after which a comparison has seen enough of a script.

The recorder of a reference runs this file by another interpreter, too: from Python 3.6 on, without this package.
"""

import sys
from typing import Any, Callable, Dict, Hashable, List, Optional

_MOST_EQUAL = 3


class StepLimit:
    """Counts the training steps of a side.

    The training that reaches the limit ends there. What the script does after it, such as an evaluation, is compared, up to its next
    training, which ends the script, as a third equal evaluation does: a loop may wait for the steps that were left out.

    Args:
        steps: Number of steps; None for no limit.

    Attributes:
        taken: Number of steps so far.

    Example:
        >>> limit = StepLimit(2)
        >>> limit.take(), limit.take()
        (False, True)
    """

    def __init__(self, steps: Optional[int]) -> None:
        self._steps = steps
        self.taken = 0
        self._evaluations: Dict[Hashable, int] = {}
        self._kept: List[Any] = []  # else other objects could get their identities

    def take(self, steps: int = 1) -> bool:
        """Counts steps, and returns True if the training must end."""
        self.taken += steps
        return self.is_reached

    @property
    def is_reached(self) -> bool:
        """True if no step may follow."""
        return self.left == 0

    @property
    def left(self) -> Optional[int]:
        """Number of steps that may follow; None for no limit."""
        return None if self._steps is None else max(0, self._steps - self.taken)

    def reach(self) -> None:
        """Makes the present step, or the next one, the last."""
        self._steps = max(1, self.taken)

    def end_script(self) -> None:
        """Ends the script, as ``sys.exit()`` does, if the limit is reached; call it where a training begins."""
        if self.is_reached:
            sys.exit(0)

    def is_repeated(self, input_fn: Callable[..., Any], metrics: Dict[str, float], *arguments: Any) -> bool:
        """Counts an evaluation, and returns True from the third equal one after the limit on.

        Args:
            input_fn: Input function; two of the same line are equal if what they read is the same.
            metrics: Numbers that the evaluation gave.
            arguments: Other objects and values that the evaluation depends on.
        """
        if not self.is_reached:
            return False
        seen = ["{} {:.4g}".format(*pair) for pair in sorted(metrics.items())]  # order of sums may round
        read, code = [*arguments, *seen, input_fn], getattr(input_fn, "__code__", None)
        if code is not None:
            cells = map(_content, input_fn.__closure__ or ())
            own = getattr(input_fn, "__self__", None)
            read[-1:] = [code, own, *cells, *(input_fn.__defaults__ or ()), *map(input_fn.__globals__.get, code.co_names)]
        self._kept.append((input_fn, read))
        key = tuple(one if isinstance(one, (str, int, float)) else id(one) for one in read)
        self._evaluations[key] = self._evaluations.get(key, 0) + 1
        return self._evaluations[key] >= _MOST_EQUAL


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return None
