"""The spelling of numbers and of the user's strings, the same on the terminal and on the page."""

import math
import re
import unicodedata
from collections.abc import Sequence

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def number(value: float) -> str:
    """Spells a loss or metric with nine digits, which tell any two float32 apart.

    Args:
        value: Any float, also NaN and infinities.

    Returns:
        The shortest spelling with nine significant digits.

    Example:
        >>> number(0.1), number(1 / 3), number(float("nan")), number(1.5e-12)
        ('0.1', '0.333333333', 'NaN', '1.5e-12')
    """
    return _spell(value, f"{value:.9g}")


def difference(value: float | None) -> str:
    """Spells a difference with three digits; an exact zero is "0".

    Args:
        value: abs_diff or rel_diff; None if there is nothing to compare.

    Example:
        >>> difference(3.14159e-7), difference(0.0), difference(None)
        ('3.14e-7', '0', '-')
    """
    if value is None:
        return "-"
    return "0" if value == 0 else _spell(value, f"{value:.2e}")


def threshold(value: float) -> str:
    """Spells a threshold as a user types it.

    Args:
        value: Threshold.

    Example:
        >>> threshold(1e-4), threshold(2.5e-6), threshold(0.25)
        ('1e-4', '2.5e-6', '0.25')
    """
    if not 0 < value < 1e-3:
        return _spell(value, f"{value:g}")
    mantissa, exponent = f"{value:e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def share(value: float) -> str:
    """Spells the part of a threshold that a difference uses.

    Args:
        value: Difference / threshold; above 1 is outside.

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
    """Spells a wall time.

    Args:
        value: Seconds.

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
    """Spells the shape of a variable.

    Args:
        dimensions: Dimensions of the variable.

    Returns:
        "3 x 3 x 32", or "scalar".

    Example:
        >>> shape((3, 3, 32)), shape(())
        ('3 x 3 x 32', 'scalar')
    """
    return " x ".join(str(size) for size in dimensions) or "scalar"


def count(quantity: int, noun: str) -> str:
    """Spells a number with its noun.

    Args:
        quantity: Number of things.
        noun: Noun for one of them; more get an "s".

    Returns:
        E.g. "1 step" or "2,000 steps".

    Example:
        >>> count(1, "step"), count(2000, "step")
        ('1 step', '2,000 steps')
    """
    return f"{quantity:,} {noun if quantity == 1 else noun + 's'}"


def first_three(names: Sequence[str]) -> str:
    """Spells the first three of some names, and how many more there are.

    Args:
        names: Names, at least one.

    Example:
        >>> first_three(["a", "b"]), first_three(["a", "b", "c", "d"])
        ('a, b', 'a, b, c and 1 more')
    """
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def visible(text: str) -> str:
    r"""Spells characters as escapes that draw nothing, or that control a terminal or the writing direction.

    Names come from the user's graph: an escape sequence in one must not recolour the terminal, and a right-to-left override
    must not reverse a verdict. Line feeds stay.

    Args:
        text: Any string, also with lone surrogates.

    Returns:
        A string that can be encoded as UTF-8.

    Example:
        >>> visible("dense/kernel"), visible("a\x1b[31m")
        ('dense/kernel', 'a\\x1b[31m')
    """
    return "".join(_escape(character) for character in text)


def shorten(text: str, length: int) -> str:
    """Leaves out the middle of a string that is longer than ``length``: scope and variable are at the two ends.

    Args:
        text: Any string.
        length: Largest number of characters to return; at least 3.

    Returns:
        At most ``length`` characters.

    Example:
        >>> shorten("input_layer/occupation_embedding/weights", 24)
        'input_layer...ng/weights'
    """
    if len(text) <= length:
        return text
    head = (length - 3 + 1) // 2
    tail = length - 3 - head
    return f"{text[:head]}...{text[len(text) - tail :]}"


def _spell(value: float, digits: str) -> str:
    if math.isnan(value):
        return "NaN"
    return re.sub(r"e([+-])0*(\d)", lambda match: f"e{match[1].strip('+')}{match[2]}", digits)


def _escape(character: str) -> str:
    if character == "\n" or unicodedata.category(character) not in _HIDDEN_CATEGORIES:
        return character
    return character.encode("unicode_escape").decode("ascii")
