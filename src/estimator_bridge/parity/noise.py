"""The noise floor of a side: what two runs of it from the same values on the same batches differ by."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from estimator_bridge.parity.result import (
    LossPoint,
    MetricPair,
    NoiseFloor,
    ParityResult,
    PredictionGroup,
    VariableDiff,
    abs_diff,
)

Item = TypeVar("Item")


def noise_floor(side: str, result: ParityResult, itself: ParityResult) -> NoiseFloor:
    """Returns the noise beside each value of a result.

    Args:
        side: Name of the side that ran twice.
        result: Comparison of the two sides.
        itself: Comparison of the side with its second run.

    Example:
        >>> from estimator_bridge.parity.result import Thresholds
        >>> sides = ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(1, 2.0, 2.5), LossPoint(2, 1.0, 1.5)))
        >>> itself = ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(1, 2.5, 2.75),))
        >>> noise_floor("modern", sides, itself).losses
        (0.25, None)
    """
    return NoiseFloor(
        side,
        losses=tuple(beside(result.losses, itself.losses, lambda point: point.step, _difference)),
        metrics=tuple(beside(result.metrics, itself.metrics, metric_key, _difference)),
        variables=tuple(beside(result.variables, itself.variables, lambda value: value.name, lambda value: value.max_abs_diff)),
        predictions=tuple(
            beside(
                result.predictions, itself.predictions, lambda group: (group.call, group.name), lambda group: group.max_abs_diff
            )
        ),
    )


def between_runs(
    result: ParityResult,
    again: ParityResult,
    variables: Sequence[VariableDiff] = (),
    predictions: Sequence[PredictionGroup] = (),
) -> ParityResult:
    """Returns a comparison of a side with its second run, of two comparisons of it with the same other side.

    Args:
        result: Comparison with the first run.
        again: Comparison with the second run.
        variables: Differences of the two runs' variables.
        predictions: Differences of the two runs' predictions.

    Returns:
        The losses and metrics of both runs, and those differences.
    """
    losses, metrics = dict(placed(again.losses, lambda point: point.step)), dict(placed(again.metrics, metric_key))
    return ParityResult(
        result.command,
        result.mode,
        result.verdict,
        result.thresholds,
        losses=tuple(
            LossPoint(point.step, point.modern, losses[place].modern)
            for place, point in placed(result.losses, lambda point: point.step)
            if place in losses
        ),
        metrics=tuple(
            MetricPair(pair.evaluation, pair.step, pair.metric, pair.modern, metrics[place].modern)
            for place, pair in placed(result.metrics, metric_key)
            if place in metrics
        ),
        variables=tuple(variables),
        predictions=tuple(predictions),
    )


def describe(noise: NoiseFloor) -> str:
    """Returns a note with the largest noise of each kind."""
    kinds = (
        ("loss", noise.losses),
        ("metric", noise.metrics),
        ("variable", noise.variables),
        ("prediction", noise.predictions),
    )
    largest = [(kind, max(found)) for kind, values in kinds if (found := [value for value in values if value is not None])]
    spelled = ", ".join(f"{value:.3g} in a {kind}" for kind, value in largest) or "in nothing that was compared"
    return f"Two runs of the {noise.side} side differ by up to {spelled}. This does not decide the verdict."


def metric_key(pair: MetricPair) -> Hashable:
    """Returns what tells a metric from others."""
    return pair.evaluation, pair.step, pair.metric


def _difference(pair: LossPoint | MetricPair) -> float:
    return 0.0 if math.isnan(pair.legacy) and math.isnan(pair.modern) else abs_diff(pair.legacy, pair.modern)


def beside(
    items: Sequence[Item], others: Sequence[Item], key: Callable[[Item], Hashable], value: Callable[[Item], float | None]
) -> Iterator[float | None]:
    """Yields for each item the value of its counterpart, or None.

    Args:
        items: Items of a result.
        others: Items of another result.
        key: Function of an item that tells which are counterparts; of several with the same key, by their order.
        value: Function of a counterpart.
    """
    found = dict(placed(others, key))
    return (value(found[place]) if place in found else None for place, _ in placed(items, key))


def placed(items: Iterable[Item], key: Callable[[Item], Hashable]) -> Iterator[tuple[Hashable, Item]]:
    """Yields each item with its key and its number among those of the same key."""
    seen: Counter[Hashable] = Counter()
    for item in items:
        yield (key(item), seen[key(item)]), item
        seen[key(item)] += 1
