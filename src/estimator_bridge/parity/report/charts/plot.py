"""The geometry of the curves: scales, downsampling, SVG paths. Pure functions over numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence

from estimator_bridge.parity.report.charts.ticks import SMALLEST

# The edge of the square that curves are drawn in; the page stretches it to the width that it has.
UNITS = 1000


@dataclasses.dataclass(frozen=True)
class Scale:
    """An axis from ``lo`` to ``hi``, linear or logarithmic (then both are positive); both as ticks are, within 1e300."""

    lo: float
    hi: float
    log: bool = False

    def fraction(self, value: float) -> float:
        """Where a value lies on the axis.

        Args:
            value: any number but NaN.

        Returns:
            0 at ``lo``, 1 at ``hi``; what is beyond an end is put on it.

        Example:
            >>> Scale(0.01, 100, log=True).fraction(1), Scale(0, 10).fraction(25)
            (0.5, 1.0)
        """
        lo, hi, at = (self._position(number) for number in (self.lo, self.hi, value))
        return min(max((at - lo) / (hi - lo), 0.0), 1.0)

    def _position(self, value: float) -> float:
        return math.log10(max(value, SMALLEST)) if self.log else value


def helps_log(values: Iterable[float], ratio: float = 20.0) -> bool:
    """True where a logarithmic axis shows more: all values positive, and the largest dwarfs the smallest.

    Args:
        values: finite numbers.
        ratio: from which largest / smallest on.

    Returns:
        Whether to use one.

    Example:
        >>> helps_log([2.3, 0.01]), helps_log([2.3, 1.9]), helps_log([2.3, 0.0])
        (True, False, False)
    """
    numbers = list(values)
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) >= ratio


def keep_extremes(values: Sequence[float], buckets: int = 500) -> list[int]:
    """The indices to draw of a long series, so that its picture stays the same.

    Each bucket keeps its first, last, smallest and largest finite value, and its first one that is not finite (the gap).

    Args:
        values: the series; NaN and infinities are gaps.
        buckets: how many equal parts to cut it into.

    Returns:
        Rising indices, at most five for each bucket; all of them where the series is no longer than that.

    Example:
        >>> keep_extremes([0, 0, 9, 0, 0, 0, -3, 0, 0, 0, 0, 0], buckets=2)
        [0, 2, 5, 6, 7, 11]
    """
    kept: set[int] = set()
    for bucket in range(buckets):
        kept.update(_landmarks(values, range(bucket * len(values) // buckets, (bucket + 1) * len(values) // buckets)))
    return sorted(kept)


def line(points: Iterable[tuple[float, float]]) -> str:
    """The path of a curve.

    Args:
        points: fractions (x from the left, y from the bottom); a y of NaN breaks the curve.

    Returns:
        The ``d`` of an SVG path in a square of UNITS; a point alone between two gaps becomes a dot.

    Example:
        >>> line([(0, 0), (0.5, 1), (0.6, float("nan")), (1, 0.5)])
        'M0 1000L500 0M1000 500h0'
    """
    return "".join(_polyline(run) if len(run) > 1 else dots(run) for run in _runs(points))


def area(points: Iterable[tuple[float, float]], base: float = 0.0) -> str:
    """The path of the surface between a curve and a horizontal line.

    Args:
        points: as for ``line``.
        base: the fraction from the bottom at which the horizontal line lies.

    Returns:
        The ``d`` of an SVG path.

    Example:
        >>> area([(0, 0.5), (1, 1)])
        'M0 500L1000 0V1000H0Z'
    """
    parts = (f"{_polyline(run)}V{_unit(1 - base)}H{_unit(run[0][0])}Z" for run in _runs(points) if len(run) > 1)
    return "".join(parts)


def dots(points: Iterable[tuple[float, float]]) -> str:
    """Strokes of no length: with a round or square cap they stay round or square however the plot is stretched.

    Args:
        points: as for ``line``.

    Returns:
        The ``d`` of an SVG path.

    Example:
        >>> dots([(0.25, 1), (0.5, 0)])
        'M250 0h0M500 1000h0'
    """
    return "".join(f"M{_unit(x)} {_unit(1 - y)}h0" for x, y in points if not math.isnan(y))


def stretches(fractions: Iterable[float], columns: int = 200) -> list[tuple[float, float]]:
    """Neighbouring points as a few bars.

    Args:
        fractions: where the points lie, from the left.
        columns: how many equal columns to tell apart.

    Returns:
        (left, width) of each bar, as fractions; at most ``columns`` / 2 + 1 of them.

    Example:
        >>> stretches([0.0, 0.01, 0.5], columns=100)
        [(0.0, 0.02), (0.5, 0.01)]
    """
    bars: list[list[int]] = []
    # The small addend: a point on the border of two columns belongs to the right one, however its fraction was rounded.
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
    run: list[tuple[float, float]] = []
    for point in points:
        if not math.isnan(point[1]):
            run.append(point)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _polyline(run: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_unit(x)} {_unit(1 - y)}" for x, y in run)


def _unit(fraction: float) -> str:
    return f"{fraction * UNITS:.1f}".removesuffix(".0")
