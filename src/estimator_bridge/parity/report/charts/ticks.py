"""Round numbers for an axis, and their labels."""

import math
from collections.abc import Sequence

# Beyond these a difference of two floats overflows or a power of ten underflows; no real loss is that large or small.
LARGEST, SMALLEST = 1e300, 1e-300
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def linear_ticks(lo: float, hi: float, target: int = 6) -> tuple[float, ...]:
    """Returns evenly spaced round numbers, the first at or below ``lo``, the last at or above ``hi``.

    Args:
        lo: Smallest value, finite.
        hi: Largest value, finite.
        target: Approximate number of ticks to return.

    Returns:
        At least two ticks, rising.

    Example:
        >>> linear_ticks(0.13, 2.31)
        (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    """
    lo, hi = _widen(_clamp(lo, -LARGEST), _clamp(hi, -LARGEST))
    mantissa, exponent = _round_step((hi - lo) / (target - 1))
    step = _decimal(mantissa, exponent)
    first, last = math.floor(lo / step), math.ceil(hi / step)
    # The division rounds: near an exact multiple it may give a tick inside the range.
    while _decimal(first * mantissa, exponent) > lo:
        first -= 1
    while _decimal(last * mantissa, exponent) < hi:
        last += 1
    return tuple(_decimal(index * mantissa, exponent) for index in range(first, last + 1))


def integer_ticks(lo: int, hi: int, target: int = 8) -> tuple[int, ...]:
    """Returns round integers inside [lo, hi]: an axis of steps is not stretched beyond its data.

    Args:
        lo: First step.
        hi: Last step.
        target: Approximate number of ticks to return.

    Returns:
        Multiples of a round number in the range; ``lo`` and ``hi`` if there are none.

    Example:
        >>> integer_ticks(1, 200), integer_ticks(7, 7)
        ((25, 50, 75, 100, 125, 150, 175, 200), (7,))
    """
    mantissa, exponent = _round_step(max((hi - lo) / target, 1.0), (1.0, 2.0, 2.5, 5.0))
    step = max(round(mantissa * 10**exponent), 1)
    ticks = tuple(range(-(-lo // step) * step, hi + 1, step))
    return ticks or tuple(sorted({lo, hi}))


def log_ticks(lo: float, hi: float, most: int = 9) -> tuple[float, ...]:
    """Returns round numbers for a logarithmic axis: a 1-2-5 series if it fits, else 1-3, else powers of ten.

    Args:
        lo: Smallest value, positive.
        hi: Largest value, positive.
        most: Largest number of ticks to return; at least 4.

    Returns:
        At least two ticks, the first at or below ``lo``, the last at or above ``hi``.

    Example:
        >>> log_ticks(0.012, 2.3)
        (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
        >>> log_ticks(1e-8, 3e-2)
        (1e-08, 1e-07, 1e-06, 1e-05, 0.0001, 0.001, 0.01, 0.1)
    """
    for mantissas in ((1, 2, 5), (1, 3)):
        ticks = _series(lo, hi, mantissas)
        if len(ticks) <= most:
            return ticks
    return decade_ticks(lo, hi, most)


def decade_ticks(lo: float, hi: float, most: int = 9) -> tuple[float, ...]:
    """Returns powers of ten, or of a power of ten if the range is very wide.

    Args:
        lo: Smallest value, positive.
        hi: Largest value, positive.
        most: Largest number of ticks to return; at least 4.

    Returns:
        At least two ticks, the first at or below ``lo``, the last at or above ``hi``.

    Example:
        >>> decade_ticks(2e-7, 3e-5)
        (1e-07, 1e-06, 1e-05, 0.0001)
    """
    ticks = _series(lo, hi, (1,))
    first, last = (round(math.log10(tick)) for tick in (ticks[0], ticks[-1]))
    stride = max(-(-(last - first) // (most - 1)), 1)
    return tuple(_decimal(1, exponent) for exponent in range(first, last + stride, stride))


def tick_labels(values: Sequence[float]) -> list[str]:
    """Spells the ticks of one axis in one style: plain near 1, powers of ten far from it.

    Args:
        values: Ticks.

    Example:
        >>> tick_labels([0.05, 0.1, 1, 20000]), tick_labels([0, 1e-7, 2e-7]), tick_labels([1e-4, 1e-2, 1])
        (['0.05', '0.1', '1', '20,000'], ['0', '10⁻⁷', '2·10⁻⁷'], ['10⁻⁴', '10⁻²', '1'])
    """
    plain = all(value == 0 or 1e-3 <= abs(value) < 1e7 for value in values)
    return [f"{value:,.10g}" if plain or value in (0, 1) else _power(value) for value in values]


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.9e}".split("e")
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    mantissa = f"{float(mantissa):g}"
    return power if mantissa == "1" else f"{mantissa}·{power}"


def _series(lo: float, hi: float, mantissas: tuple[int, ...]) -> tuple[float, ...]:
    lo, hi = _clamp(lo, SMALLEST), _clamp(hi, SMALLEST)
    exponents = range(math.floor(math.log10(lo)) - 1, math.ceil(math.log10(hi)) + 2)
    ticks = [_decimal(mantissa, exponent) for exponent in exponents for mantissa in mantissas]
    first = max(index for index, tick in enumerate(ticks) if tick <= lo)
    last = min(index for index, tick in enumerate(ticks) if tick >= hi)
    return tuple(ticks[first : max(last, first + 1) + 1])


def _clamp(value: float, least: float) -> float:
    return min(max(value, least), LARGEST)


def _widen(lo: float, hi: float) -> tuple[float, float]:
    # A constant, or one that varies only in its last bits, is a flat line, not noise stretched to the height of the plot.
    least = max(1e-3 * max(abs(lo), abs(hi)), SMALLEST) if lo or hi else 1.0
    return (lo, hi) if hi - lo >= least else (lo - least, hi + least)


def _round_step(step: float, mantissas: tuple[float, ...] = (1, 2, 5)) -> tuple[float, int]:
    exponent = math.floor(math.log10(step))
    for mantissa in mantissas:
        if mantissa * 10.0**exponent >= step * (1 - 1e-9):
            return mantissa, exponent
    return mantissas[0], exponent + 1


def _decimal(mantissa: float, exponent: int) -> float:
    # Through the decimal spelling, because 3 * 0.1 is not 0.3.
    return float(f"{mantissa}e{exponent}")
