"""How numbers are spelled, the same in the terminal and on the page."""

from __future__ import annotations

import math
import re


def number(value: float) -> str:
    """A loss or metric with the nine digits that tell any two float32 apart.

    Args:
        value: any float, NaN and infinities included.

    Returns:
        Its shortest spelling with nine significant digits.

    Example:
        >>> number(0.1), number(1 / 3), number(float("nan")), number(1.5e-12)
        ('0.1', '0.333333333', 'NaN', '1.5e-12')
    """
    return _spell(value, f"{value:.9g}")


def difference(value: float | None) -> str:
    """A difference with three digits; an exact zero is spelled "0".

    Args:
        value: an abs_diff or rel_diff; None where there is nothing to compare.

    Returns:
        The spelling.

    Example:
        >>> difference(3.14159e-7), difference(0.0), difference(None)
        ('3.14e-7', '0', '-')
    """
    if value is None:
        return "-"
    return "0" if value == 0 else _spell(value, f"{value:.2e}")


def threshold(value: float) -> str:
    """A threshold as its user would type it.

    Args:
        value: a threshold.

    Returns:
        The spelling.

    Example:
        >>> threshold(1e-4), threshold(2.5e-6), threshold(0.25)
        ('1e-4', '2.5e-6', '0.25')
    """
    if not 0 < value < 1e-3:
        return _spell(value, f"{value:g}")
    mantissa, exponent = f"{value:e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def share(value: float) -> str:
    """How much of a threshold was used up, in words.

    Args:
        value: difference / threshold; above 1 is outside.

    Returns:
        A percentage inside, a factor outside.

    Example:
        >>> share(0.0), share(0.0312), share(4.0), share(float("inf"))
        ('0 %', '3.1 %', '4x', 'inf')
    """
    if not math.isfinite(value):
        return number(value)
    if value <= 1:
        return f"{value * 100:.2g} %" if 0 < value < 0.1 else f"{value * 100:.0f} %"
    if value < 100:
        return f"{value:.2g}x"
    return f"{value:,.0f}x" if value < 1e6 else f"{_spell(value, f'{value:.1e}')}x"


def seconds(value: float) -> str:
    """A wall time.

    Args:
        value: seconds.

    Returns:
        Seconds below two minutes, otherwise minutes and seconds.

    Example:
        >>> seconds(3.21), seconds(754.0)
        ('3.2 s', '12 min 34 s')
    """
    if not math.isfinite(value) or value < 120:
        return f"{value:.1f} s"
    return f"{value // 60:.0f} min {value % 60:.0f} s"


def shape(dimensions: tuple[int, ...]) -> str:
    """The shape of a variable.

    Args:
        dimensions: its dimensions.

    Returns:
        "3 x 3 x 32", or "scalar".

    Example:
        >>> shape((3, 3, 32)), shape(())
        ('3 x 3 x 32', 'scalar')
    """
    return " x ".join(str(size) for size in dimensions) or "scalar"


def count(quantity: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun.

    Args:
        quantity: how many.
        singular: the noun for one.
        plural: the noun for any other number; ``singular`` + "s" by default.

    Returns:
        For instance "1 step" or "2,000 steps".

    Example:
        >>> count(1, "step"), count(2000, "step")
        ('1 step', '2,000 steps')
    """
    return f"{quantity:,} {singular if quantity == 1 else plural or singular + 's'}"


def _spell(value: float, digits: str) -> str:
    if math.isnan(value):
        return "NaN"
    return re.sub(r"e([+-])0*(\d)", lambda match: f"e{match[1].strip('+')}{match[2]}", digits)
