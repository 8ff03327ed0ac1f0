"""Arithmetic of Python 2: ``/`` floors whole numbers and arrays and tensors of them; ``round`` gives floats and rounds halves away from zero."""

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Any


def divide(left: Any, right: Any) -> Any:
    """Returns ``left / right`` without ``from __future__ import division``.

    Example:
        >>> divide(7, 2), divide(-7, 2), divide(7.0, 2)
        (3, -4, 3.5)
    """
    return left // right if _is_whole(left) and _is_whole(right) else left / right


def divide_in_place(left: Any, right: Any) -> Any:
    """Returns the result of ``left /= right``; arrays keep their identity and type."""
    if _is_whole(left) and _is_whole(right):
        left //= right
    else:
        left /= right
    return left


def round(number: Any, ndigits: int = 0) -> float:  # noqa: A001 -- it replaces the builtin
    """Returns ``round(number, ndigits)``.

    Example:
        >>> round(2.5), round(-0.5), round(3), round(2.675, 2)
        (3.0, -1.0, 3.0, 2.67)
    """
    value = float(number)
    if not math.isfinite(value):
        return value
    return math.copysign(float(Decimal(value).quantize(Decimal(1).scaleb(-ndigits), ROUND_HALF_UP)), value)


def _is_whole(value: Any) -> bool:
    if isinstance(value, int) or type(value).__name__ == "Dimension":  # of a TensorShape, which has no other division
        return True
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "") in ("i", "u", "b") or bool(getattr(dtype, "is_integer", False))
