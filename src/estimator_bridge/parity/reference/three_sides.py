"""The script's original TensorFlow 1 as a third side: its values beside those of both paths, and each pair judged."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Mapping

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.noise import beside, metric_key
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.report.spelling import first_three
from estimator_bridge.parity.result import ParityResult, ReferenceValues, Verdict

_RANK = {verdict: rank for rank, verdict in enumerate(("equal", "not comparable", "different"))}
_RECORDING = ("reference", "legacy")  # the sides whose random operations are known


def with_reference(result: ParityResult, judged: Callable[..., ParityResult], traces: Mapping[str, Trace]) -> ParityResult:
    """Returns a result whose verdict counts the reference, too: it is "equal" only if each pair of the three sides is.

    Args:
        result: Comparison of the legacy side with the modern side.
        judged: Function of two traces and ``sides`` that compares them.
        traces: Traces of the sides, by name.
    """
    pairs = {side: judged(traces["reference"], traces[side], sides=("reference", side)) for side in ("legacy", "modern")}
    unequal = _unequal_draws(traces)
    versions = next(traces["reference"].events("versions"), {})
    verdicts = [result.verdict, *(_explained(pair.verdict, bool(unequal)) for pair in pairs.values())]
    named = {**{f"reference and {side}": pair for side, pair in pairs.items()}, "legacy and modern": result}
    findings = [
        dataclasses.replace(found, message=f"{name}: {found.message}")
        for name, pair in named.items()
        for found in pair.findings
    ]
    legacy, modern = pairs["legacy"], pairs["modern"]
    values = ReferenceValues(
        versions.get("tensorflow", ""),
        versions.get("python", ""),
        losses=tuple(beside(result.losses, legacy.losses, lambda point: point.step, lambda point: point.legacy)),
        metrics=tuple(beside(result.metrics, legacy.metrics, metric_key, lambda pair: pair.legacy)),
        variables=_larger(
            *(
                beside(result.variables, pair.variables, lambda one: one.name, lambda one: one.max_abs_diff)
                for pair in (legacy, modern)
            )
        ),
        predictions=_larger(
            *(
                beside(result.predictions, pair.predictions, lambda one: (one.call, one.name), lambda one: one.max_abs_diff)
                for pair in (legacy, modern)
            )
        ),
    )
    note = (
        f"The reference is TensorFlow {values.tensorflow} on Python {values.python}; both paths follow its values and batches."
    )
    return dataclasses.replace(
        result,
        verdict=max(verdicts, key=_RANK.__getitem__),
        findings=tuple(sorted(findings, key=lambda found: float("inf") if found.step is None else found.step)),
        notes=(note, *unequal, *_ordered(traces["reference"]), *result.notes),
        reference=values,
    )


def check_reference(python: str) -> None:
    """Raises BridgeError if the interpreter of the reference cannot be run."""
    if shutil.which(python) is None:
        raise BridgeError(
            "The interpreter of --reference-python cannot be run.",
            expected="the path of a Python 3.6 or later with TensorFlow 1.12 to 1.15",
            received=python,
            fix="Name the python of that environment, e.g. old/bin/python.",
        )


def _explained(verdict: Verdict, is_unequal: bool) -> Verdict:
    """Returns the verdict of a pair whose random numbers may differ."""
    return "not comparable" if verdict == "different" and is_unequal else verdict


def _unequal_draws(traces: Mapping[str, Trace]) -> list[str]:
    """Returns a note if the random operations of a training have other names in the reference: their seeds depend on the names."""
    drawn = [
        {(event["call"], name) for event in traces[side].events("random") for name in event["in_step"]} for side in _RECORDING
    ]
    names = sorted({name for _, name in drawn[0] ^ drawn[1]})
    if not names:
        return []
    return [f"Random operations have other names in the reference, so that they draw other numbers: {first_three(names)}."]


def _ordered(reference: Trace) -> list[str]:
    """Returns a note if a step of the reference assigned to variables in no order before it was recorded."""
    names = sorted({name for event in reference.events("ordered") for name in event["names"]})
    return [f"The reference, too, assigns in the order of the script's lines: {first_three(names)}."] if names else []


def _larger(*columns: Iterator[float | None]) -> tuple[float | None, ...]:
    """Returns the larger value of each pair; None if one is missing."""
    return tuple(
        None if None in pair else max(value for value in pair if value is not None) for pair in zip(*columns, strict=True)
    )
