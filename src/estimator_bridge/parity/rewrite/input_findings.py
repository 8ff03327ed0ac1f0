"""The verdict on the new script's own training batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityFinding

_SPREAD = 8.0  # ratio of standard deviations that no other rows of the same data and no augmentation explain


def judge_inputs(new: Trace) -> tuple[list[ParityFinding], list[str]]:
    """Returns findings and notes on the new script's own batches.

    Args:
        new: Trace of the new side.
    """
    event: dict[str, Any] = next(new.events("inputs"), {})
    if not event:
        return [], []
    if others := other_evaluations(new):
        return [ParityFinding("batch", f"Other data is evaluated or predicted: {'; '.join(others)}.")], []
    if event["equal"] == event["seen"]:
        return [], [f"The first {event['seen']} batches that the new script's own input gives are those of the old script."]
    far = other_values(new)
    if far:
        return [ParityFinding("batch", f"The new script's own input gives other values: {'; '.join(far)}.", 1)], []
    text = "The new script's own input gives other batches; it ran on those of the old script."
    if size := event.get("other_size"):
        text += f" Its batch {size[0]} has {size[1]} rows, the old script's {size[2]}: see the order of repeat and batch."
    if event["rows"] and not event["shared"]:
        text += f" None of the {event['rows']} rows seen is one of the old script's: whether they are prepared alike was not compared."
    return [], [text]


def other_values(new: Trace) -> tuple[str, ...]:
    """Returns what is said of each tensor of the new script's own batches whose values no other order of rows explains.

    Args:
        new: Trace of the new side.
    """
    event: dict[str, Any] = next(new.events("inputs"), {})
    texts = {
        name: f"{name} is {slope:.4g} x the old script's" + (f" {offset:+.4g}" if offset else "")
        for name, (slope, offset) in event.get("lines", {}).items()
    }
    apart = {
        name: f"{name} differs in {others} of {seen} batches, whose rows are in the old script's order"
        for name, (others, seen) in event.get("tensors", {}).items()
    } or {
        name: f"{name} differs in {others} of {seen} rows whose other tensors are the old script's"
        for name, (others, seen) in event.get("parts", {}).items()
    }
    texts = dict(_far(event.get("spreads", {}))) | apart | texts
    if (distinct := event.get("others", 0)) and not texts:
        without = [
            f"; {name} has hardly a value in common with it, and {ratio:.3g} times its standard deviation"
            for name, ratio in event.get("apart", {}).items()
        ]
        return (f"none of its {distinct} rows is one of the old script's, whose batches repeat theirs, too{''.join(without)}",)
    return tuple(texts.values())


def other_evaluations(new: Trace) -> tuple[str, ...]:
    """Returns what is said of each evaluation whose own rows are none of the old script's, though the trainings share rows.

    Args:
        new: Trace of the new side.
    """
    event: dict[str, Any] = next(new.events("inputs"), {})
    return tuple(
        f"none of the {own} rows that the new script's own input gives {call} is one of the old script's {old}"
        for call, (own, old) in event.get("evaluations", {}).items()
    )


def any_shuffles(*sources: bool | None) -> bool | None:
    """Returns True if a source shuffles, False if all have a fixed order; None if that is not known."""
    return True if True in sources else None if None in sources else False


def _far(spreads: dict[str, list[float]]) -> Iterator[tuple[str, str]]:
    for name, (mean, deviation, old_mean, old_deviation) in spreads.items():
        ratio = max(deviation, 1e-30) / max(old_deviation, 1e-30)
        if not 1 / _SPREAD < ratio < _SPREAD or abs(mean - old_mean) > max(deviation, old_deviation):
            own = f"{name} has mean {mean:.3g}, standard deviation {deviation:.3g}"
            yield name, f"{own}; the old script's {old_mean:.3g}, {old_deviation:.3g}"
