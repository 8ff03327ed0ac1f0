"""The geometry of the curves: scales, downsampling, SVG paths. Pure functions over numbers."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from estimator_bridge.parity.report.charts.ticks import SMALLEST

# The edge of the square that curves are drawn in; the page stretches it to its width.
UNITS = 1000


class Scale(NamedTuple):
    """An axis from ``lo`` to ``hi``, both within 1e300, as ticks are.

    Attributes:
        log: True if the axis is logarithmic; then both ends are positive.
        strip: Fraction at the low end for exact zeros, which have no logarithm.
    """

    lo: float
    hi: float
    log: bool = False
    strip: float = 0.0

    def fraction(self, value: float) -> float:
        """Returns the place of a value on the axis.

        Args:
            value: Any number; NaN, which is worse than any other, is at the high end.

        Returns:
            ``strip`` at ``lo``, 1 at ``hi``; values beyond an end are placed on it.

        Example:
            >>> Scale(0.01, 100, log=True).fraction(1), Scale(0, 10).fraction(25)
            (0.5, 1.0)
        """
        if math.isnan(value):
            return 1.0
        if self.strip and value == 0:
            return self.strip / 2
        lo, hi, at = (math.log10(max(end, SMALLEST)) if self.log else end for end in (self.lo, self.hi, value))
        return self.strip + (1 - self.strip) * min(max((at - lo) / (hi - lo), 0.0), 1.0)


def helps_log(values: Iterable[float], ratio: float = 20.0) -> bool:
    """Returns True if a logarithmic axis shows more: all values are positive, and the largest dwarfs the smallest.

    Args:
        values: Finite numbers.
        ratio: Smallest quotient of largest and smallest value for a logarithmic axis.

    Example:
        >>> helps_log([2.3, 0.01]), helps_log([2.3, 1.9]), helps_log([2.3, 0.0])
        (True, False, False)
    """
    numbers = list(values)
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) >= ratio


def keep_extremes(values: Sequence[float], buckets: int = 500) -> list[int]:
    """Returns the indices of a long series to draw, so that its picture stays the same.

    Each bucket keeps its first, last, smallest and largest finite value, and its first one that is not finite (the gap).

    Args:
        values: Series; NaN and infinities are gaps.
        buckets: Number of equal parts to cut the series into.

    Returns:
        Rising indices, at most five for each bucket; all indices of a short series.

    Example:
        >>> keep_extremes([0, 0, 9, 0, 0, 0, -3, 0, 0, 0, 0, 0], buckets=2)
        [0, 2, 5, 6, 7, 11]
    """
    kept: set[int] = set()
    for bucket in range(buckets):
        kept.update(_landmarks(values, range(bucket * len(values) // buckets, (bucket + 1) * len(values) // buckets)))
    return sorted(kept)


def line(points: Iterable[tuple[float, float]]) -> str:
    """Returns the path of a curve.

    Args:
        points: Fractions (x from the left, y from the bottom); a y of NaN breaks the curve.

    Returns:
        The ``d`` of an SVG path in a square of UNITS; a single point between two gaps becomes a dot.

    Example:
        >>> line([(0, 0), (0.5, 1), (0.6, float("nan")), (1, 0.5)])
        'M0 1000L500 0M1000 500h.1'
    """
    return "".join(_polyline(run) if len(run) > 1 else dots(run) for run in _runs(points))


def strokes(fractions: Iterable[float], columns: int = 400) -> str:
    """Returns the path of vertical lines through the whole plot.

    Args:
        fractions: Places from the left; those in the same column are drawn once.
        columns: Number of columns.

    Example:
        >>> strokes([0.5, 0.5001, 1.0])
        'M500 0v1000M1000 0v1000'
    """
    occupied = sorted({round(fraction * columns) for fraction in fractions})
    return "".join(f"M{column * UNITS / columns:g} 0v{UNITS}" for column in occupied)


def area(points: Iterable[tuple[float, float]]) -> str:
    """Returns the path of the surface below a curve.

    Args:
        points: Fractions, see ``line``.

    Returns:
        The ``d`` of an SVG path.

    Example:
        >>> area([(0, 0.5), (1, 1)])
        'M0 500L1000 0V1000H0Z'
    """
    return "".join(f"{_polyline(run)}V{UNITS}H{_unit(run[0][0])}Z" for run in _runs(points) if len(run) > 1)


def dots(points: Iterable[tuple[float, float]]) -> str:
    """Returns strokes of almost no length, whose caps keep their form however the plot is stretched; a PDF has no square caps without length.

    Args:
        points: Fractions, see ``line``.

    Returns:
        The ``d`` of an SVG path.

    Example:
        >>> dots([(0.25, 1), (0.5, 0)])
        'M250 0h.1M500 1000h.1'
    """
    return "".join(f"M{_unit(x)} {_unit(1 - y)}h.1" for x, y in points if not math.isnan(y))


def stretches(fractions: Iterable[float], columns: int = 200) -> list[tuple[float, float]]:
    """Merges neighbouring points to a few bars.

    Args:
        fractions: Places of the points, from the left.
        columns: Number of equal columns to tell apart.

    Returns:
        (left, width) of each bar, as fractions; at most ``columns`` / 2 + 1 of them.

    Example:
        >>> stretches([0.0, 0.01, 0.5], columns=100)
        [(0.0, 0.02), (0.5, 0.01)]
    """
    bars: list[list[int]] = []
    # Because of the addend, a point on the border of two columns is in the right one, however its fraction was rounded.
    for column in sorted({min(int(fraction * columns + 1e-9), columns - 1) for fraction in fractions}):
        if bars and bars[-1][1] == column:
            bars[-1][1] = column + 1
        else:
            bars.append([column, column + 1])
    return [(left / columns, (right - left) / columns) for left, right in bars]


def _landmarks(values: Sequence[float], indices: range) -> Iterator[int]:
    finite = [index for index in indices if math.isfinite(values[index])]
    if finite:
        yield from (finite[0], min(finite, key=values.__getitem__), max(finite, key=values.__getitem__), finite[-1])
    if len(finite) < len(indices):
        yield next(index for index in indices if not math.isfinite(values[index]))


def _runs(points: Iterable[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    for is_gap, run in itertools.groupby(points, lambda point: math.isnan(point[1])):
        if not is_gap:
            yield list(run)


def _polyline(run: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_unit(x)} {_unit(1 - y)}" for x, y in run)


def _unit(fraction: float) -> str:
    return f"{fraction * UNITS:.1f}".removesuffix(".0")
