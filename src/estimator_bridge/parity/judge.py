"""Reads what both sides wrote down and says where they part: pure comparison, one function a level."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import LossPoint, MetricPair, ParityFinding, ParityResult, Thresholds, VariableDiff, Verdict
from estimator_bridge.parity.values import compare_values, first_updates, initial_values

Steps = Sequence[dict[str, Any]]


def judge(
    legacy: Trace,
    modern: Trace,
    *,
    command: tuple[str, ...],
    replaying: bool,
    replicas: int,
    thresholds: Thresholds,
    seconds: dict[str, float],
    environment: dict[str, str],
) -> ParityResult:
    """Compares two finished traces.

    Args:
        legacy, modern: what each side wrote.
        command: for the report.
        replaying: the modern side had the legacy side's batches.
        replicas: of the modern side.
        thresholds: what counts as equal.
        seconds, environment: for the report.

    Returns:
        The result; its verdict is "different" exactly when there are findings that random numbers cannot explain.

    Raises:
        BridgeError: when the script called no Estimator.
    """
    if not any(True for _ in legacy.events("train", "evaluated", "predicted")):
        raise BridgeError(
            "The script called no Estimator, so there is nothing to compare.",
            expected="train, evaluate, predict or train_and_evaluate of a tf.estimator.Estimator",
            fix="Check the script and its arguments.",
        )
    trained = [event["call"] for event in legacy.events("trained")]
    losses = tuple(point for call in trained for point in _losses(_steps(legacy, call), _steps(modern, call)))
    metrics = tuple(_metrics(legacy, modern))
    variables = tuple(_variables(legacy, modern))
    levels = [
        _calls(legacy, modern),
        _unpaired_metrics(legacy, modern),
        *(level for call in trained for level in _training(legacy, modern, call)),
        _loss_findings(losses, thresholds),
        _metric_findings(metrics, thresholds),
        _variable_findings(variables, thresholds),
        _predictions(legacy, modern, thresholds),
    ]
    findings = sorted(itertools.chain(*levels), key=lambda finding: float("inf") if finding.step is None else finding.step)
    unequal_noise = _unequal_noise(legacy, replicas)
    verdict: Verdict = "equal" if not findings else "not comparable" if unequal_noise else "different"
    return ParityResult(
        command=command,
        mode="replay" if replaying else "free-run",
        verdict=verdict,
        thresholds=thresholds,
        losses=losses,
        metrics=metrics,
        variables=variables,
        findings=tuple(findings),
        notes=tuple(_notes(legacy, modern, replaying, replicas, unequal_noise)),
        environment=environment,
        seconds=seconds,
    )


def _steps(trace: Trace, call: str) -> Steps:
    return [event for event in trace.events("step") if event["call"] == call]


def _losses(legacy: Steps, modern: Steps) -> Iterator[LossPoint]:
    for old, new in zip(legacy, modern, strict=False):
        yield LossPoint(old["step"], old["loss"], new["loss"])


def _training(legacy: Trace, modern: Trace, call: str) -> Iterator[list[ParityFinding]]:
    old, new = _steps(legacy, call), _steps(modern, call)
    first = old[0]["step"] if old else 0
    yield list(initial_values(legacy.values(call, "initial"), modern.values(call, "initial"), first - 1))
    yield list(_batches(old, new))
    yield list(first_updates(legacy, modern, call, first))
    if len(old) != len(new):
        step = first + min(len(old), len(new))
        yield [ParityFinding("calls", f"{call}: legacy trained {len(old)} steps, modern {len(new)}.", step)]


def _batches(legacy: Steps, modern: Steps) -> Iterator[ParityFinding]:
    pairs = list(zip(legacy, modern, strict=False))
    different = [index for index, (old, new) in enumerate(pairs) if old["batch"] != new["batch"]]
    if not different:
        return
    index = different[0]
    seen = modern[index]["batch"]
    elsewhere = next((old["step"] for old in legacy if old["batch"] == seen), None)
    where = "one that legacy never saw" if elsewhere is None else f"the one that legacy trained on at step {elsewhere}"
    yield ParityFinding("batch", f"The modern side trained on another batch: {where}.", legacy[index]["step"])


def _loss_findings(losses: Sequence[LossPoint], thresholds: Thresholds) -> list[ParityFinding]:
    outside = [point for point in losses if not thresholds.accept(point.legacy, point.modern)]
    if not outside:
        return []
    first = outside[0]
    message = f"The losses part: legacy {first.legacy:.9g}, modern {first.modern:.9g} ({len(outside)} of {len(losses)} steps outside)."
    return [ParityFinding("loss", message, first.step)]


def _metrics(legacy: Trace, modern: Trace) -> Iterator[MetricPair]:
    new = {_evaluation(event): event["metrics"] for event in modern.events("evaluated")}
    for event in legacy.events("evaluated"):
        name, step = _evaluation(event)
        for metric, value in event["metrics"].items():
            other = new.get((name, step), {}).get(metric)
            if metric != "global_step" and other is not None:
                yield MetricPair(name, step, metric, value, other)


def _unpaired_metrics(legacy: Trace, modern: Trace) -> list[ParityFinding]:
    """Metrics that have no counterpart at the same evaluation and step are found, not left out."""
    old, new = (
        {(*_evaluation(event), metric) for event in trace.events("evaluated") for metric in event["metrics"]}
        for trace in (legacy, modern)
    )
    return [
        ParityFinding("metric", f"{metric} of evaluation {name or 'eval'!r} is there on one side alone.", step)
        for name, step, metric in sorted(old ^ new)
        if metric != "global_step"
    ]


def _evaluation(event: dict[str, Any]) -> tuple[str, int]:
    return event["name"], int(event["metrics"]["global_step"])


def _metric_findings(metrics: Sequence[MetricPair], thresholds: Thresholds) -> list[ParityFinding]:
    return [
        ParityFinding(
            "metric",
            f"{pair.metric} of evaluation {pair.evaluation or 'eval'!r}: legacy {pair.legacy:.9g}, modern {pair.modern:.9g}.",
            pair.step,
        )
        for pair in metrics
        if not thresholds.accept(pair.legacy, pair.modern)
    ]


def _variables(legacy: Trace, modern: Trace) -> Iterator[VariableDiff]:
    new = {event["call"]: event["checkpoint"] for event in modern.events("trained")}
    last = list(legacy.events("trained"))[-1:]
    for event in last:
        if event["checkpoint"] and new.get(event["call"]):
            yield from compare_values(event["checkpoint"], new[event["call"]])


def _variable_findings(variables: Sequence[VariableDiff], thresholds: Thresholds) -> list[ParityFinding]:
    outside = [v for v in variables if v.max_abs_diff is None or not thresholds.accept_variable(v.max_abs_diff, v.largest)]
    if not outside:
        return []
    worst = max(outside, key=lambda v: float("inf") if v.max_abs_diff is None else v.max_abs_diff)
    told = worst.note or f"max abs_diff {worst.max_abs_diff:.3g}"
    return [ParityFinding("variable", f"{len(outside)} of {len(variables)} final variables part, {worst.name} most ({told}).")]


def _calls(legacy: Trace, modern: Trace) -> list[ParityFinding]:
    kinds = ("train", "evaluated", "predicted")
    old, new = ([event["call"] for event in trace.events(*kinds)] for trace in (legacy, modern))
    missing = [call for call in old if call not in new] + [call for call in new if call not in old]
    return [ParityFinding("calls", f"Only one side made these calls: {', '.join(missing)}.")] if missing else []


def _predictions(legacy: Trace, modern: Trace, thresholds: Thresholds) -> Iterator[ParityFinding]:
    for event in legacy.events("predicted"):
        call = event["call"]
        if not (legacy.predictions(call).exists() and modern.predictions(call).exists()):
            continue
        with np.load(legacy.predictions(call)) as old, np.load(modern.predictions(call)) as new:
            for key in old.files:
                if key not in new.files or not _equal_arrays(old[key], new[key], thresholds):
                    yield ParityFinding("prediction", f"{call}: the predictions {key.removeprefix('key:')!r} differ.")


def _equal_arrays(legacy: Any, modern: Any, thresholds: Thresholds) -> bool:
    if legacy.shape != modern.shape:
        return False
    if not np.issubdtype(legacy.dtype, np.floating):
        return bool((legacy == modern).all())
    return bool(np.allclose(legacy, modern, rtol=thresholds.rel, atol=thresholds.abs, equal_nan=True))


def _unequal_noise(legacy: Trace, replicas: int) -> list[str]:
    """Random numbers that both sides cannot draw alike."""
    events = list(legacy.events("random"))
    inside = [f"random numbers drawn inside {name}" for event in events for name in event["functions"]]
    if replicas > 1:
        inside += [f"{name}, which each replica draws for itself" for event in events for name in event["in_step"]]
    return inside


def _notes(legacy: Trace, modern: Trace, replaying: bool, replicas: int, unequal_noise: Sequence[str]) -> Iterator[str]:
    yield "Both sides start from the legacy side's initial values and seed random operations by their name."
    if replaying:
        yield "The modern side trains and evaluates on the batches that the legacy side recorded."
    if replicas > 1:
        yield f"The modern side splits each batch over {replicas} replicas."
    if any(event["checkpoint"] is None for event in list(legacy.events("trained"))[-1:]):
        yield "The last training left no checkpoint in its model_dir, so the final variables were not compared."
    for noise in unequal_noise:
        yield f"Cannot be made equal: {noise}."
    for side, trace in (("legacy", legacy), ("modern", modern)):
        yield from dict.fromkeys(f"{side}: {event['message']}" for event in trace.events("note"))
