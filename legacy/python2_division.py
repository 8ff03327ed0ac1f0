"""Division as Python 2 did it without ``from __future__ import division``: whole numbers, arrays and tensors of them are floored."""

from __future__ import annotations

from typing import Any


def divide(left: Any, right: Any) -> Any:
    """``left / right`` of Python 2.

    Example:
        >>> divide(7, 2), divide(-7, 2), divide(7.0, 2)
        (3, -4, 3.5)
    """
    return left // right if _whole(left) and _whole(right) else left / right


def divide_in_place(left: Any, right: Any) -> Any:
    """``left /= right`` of Python 2: arrays keep their place and their type."""
    if _whole(left) and _whole(right):
        left //= right
    else:
        left /= right
    return left


def _whole(value: Any) -> bool:
    if isinstance(value, int) or type(value).__name__ == "Dimension":  # of a TensorShape, which knows no other division
        return True
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "") in ("i", "u", "b") or bool(getattr(dtype, "is_integer", False))
