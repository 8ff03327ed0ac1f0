"""The exports of an old script and of its rewrite, on requests made of a recorded batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityFinding, Thresholds
from estimator_bridge.parity.values import read_value
from estimator_bridge.script.quiet import quiet_start_up


def export_findings(
    old: Trace, new: Trace, anchored: Collection[int], thresholds: Thresholds
) -> tuple[list[ParityFinding], list[str], list[str]]:
    """Compares the answers of exports.

    An export's counterpart is that after as many steps whose signatures have the most inputs and outputs of the same names; of several, the
    last. There the new side has the old side's values, so that answers differ only if the model of the export or its names do.

    Args:
        old, new: Traces of the sides.
        anchored: Numbers of steps after which the new side got the old side's values.
        thresholds: Largest differences that count as equal.

    Returns:
        A finding for each signature whose answers differ, a note for each part that was not compared, and the old script's exports without
        a counterpart.
    """
    found: list[ParityFinding | str] = []
    alone: list[str] = []
    left = list(_after_steps(new))
    for steps, event in exports_of(old):
        there = [one for one in left if one[0] == steps and _served(event) & _served(one[1])]
        if not there or steps not in anchored:
            alone.append(event["call"])
            continue
        pair = max(reversed(there), key=lambda one: len(_names(event) & _names(one[1])))
        left.remove(pair)
        with quiet_start_up():
            from estimator_bridge.parity.exports.recorded import answer_findings

        if missing := sorted(_served(event) - _served(pair[1])):
            found.append(f"{event['call']}: the new script's export has no signature {', '.join(missing)}.")
        found += answer_findings(event, pair[1], old, thresholds)
    return [one for one in found if isinstance(one, ParityFinding)], [one for one in found if isinstance(one, str)], alone


def exports_of(old: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields each export of the old script and the number of steps before it, which may be written before the event of its last step."""
    start = next(old.events("step"), {"step": 1})["step"] - 1
    for event in old.events("exported"):
        index = read_index(event["variables"]) if event["variables"] else None
        step = int(read_value(index, "global_step")) if index and "global_step" in index.entries else -1
        yield step - start, event


def _after_steps(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    steps = 0
    for event in trace.events("step", "exported"):
        steps += event["event"] == "step"
        if event["event"] == "exported":
            yield steps, event


def _names(event: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Returns the signature, the part and the name of each input and output."""
    signatures = event["signatures"].items()
    return {(name, part, key) for name, signature in signatures for part, keys in signature.items() for key in keys}


def _served(event: dict[str, Any]) -> set[str]:
    return {name.removeprefix("serve ") for name in event["signatures"] if not name.startswith("serve __")}
