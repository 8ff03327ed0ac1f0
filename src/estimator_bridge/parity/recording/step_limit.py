"""The number of training steps after which a comparison has seen enough of a script.

The recorder of a reference runs this file by another interpreter, too: from Python 3.6 on, without this package.
"""

import contextlib
import functools
import pickle
import sys
import types
import zlib
from typing import Any, Callable, Dict, Hashable, List, Optional

_MOST_EQUAL = 3
_DEPTH = 6
"""Levels of functions and containers within each other whose content is looked at."""
_LONG, _LARGE = 10000, 2**30
"""Elements of a container from which it is looked at as a whole, and bytes of an array from which it is not."""


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
            input_fn: Input function; two that were made alike, of data with the same content, are equal.
            metrics: Numbers that the evaluation gave.
            arguments: Other objects and values that the evaluation depends on.
        """
        if not self.is_reached:
            return False
        seen = ["{} {:.4g}".format(*pair) for pair in sorted(metrics.items())]  # order of sums may round
        key = self._content([input_fn, *arguments, *seen])
        self._evaluations[key] = self._evaluations.get(key, 0) + 1
        return self._evaluations[key] >= _MOST_EQUAL

    def _content(self, value: Any, depth: int = _DEPTH) -> Hashable:
        """Returns a key that values with the same content share; any other object, e.g., a dataset, has a key of its own."""
        if value is None or type(value) in (str, bytes, bool, int, float):
            return (type(value).__name__, value)
        is_large = isinstance(value, (dict, list, tuple)) and len(value) > _LONG
        parts = _parts(value) if depth and not is_large else None
        if parts is not None:
            return (type(value).__name__, *(self._content(part, depth - 1) for part in parts))
        is_array = hasattr(type(value), "__array__") and getattr(value, "nbytes", 0) < _LARGE  # of NumPy or pandas
        if is_array or is_large:
            with contextlib.suppress(Exception):  # of what cannot be pickled
                return zlib.crc32(pickle.dumps(value, protocol=4))
        self._kept.append(value)
        return id(value)


def _parts(value: Any) -> Optional[List[Any]]:
    """Returns what a container, or a function that reads something, consists of; None for others."""
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.FunctionType):
        cells = map(_cell_content, value.__closure__ or ())
        read = map(value.__globals__.get, _names(value.__code__))
        return [value.__code__, *cells, value.__defaults__, value.__kwdefaults__, *read]
    return None


def _names(code: types.CodeType) -> List[str]:
    """Returns the names that a function reads, and those of the functions inside of it."""
    inner = [_names(one) for one in code.co_consts if isinstance(one, types.CodeType)]
    return [*code.co_names, *(name for names in inner for name in names)]


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return None
