"""Reads the traces of both sides and says where they differ: pure comparison, one function a level."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.filesize import decimal

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.calls import MAX_PREDICTIONS
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import (
    LossPoint,
    MetricPair,
    ParityFinding,
    ParityResult,
    PredictionGroup,
    Thresholds,
    VariableDiff,
    Verdict,
)
from estimator_bridge.parity.values import compare_values, equal_arrays, first_updates, initial_values, max_abs_diff
from estimator_bridge.script.quiet import quiet_start_up

SIDES = ("legacy", "modern")


class _Step(NamedTuple):
    """Keeps the number of a training step, its loss, and the digest of its batch."""

    step: int
    loss: float
    batch: int | None


def judge(
    legacy: Trace,
    modern: Trace,
    *,
    command: tuple[str, ...],
    replaying: bool,
    replicas: int,
    thresholds: Thresholds,
    micro: int = 1,
    sides: tuple[str, str] = SIDES,
    recorded: Trace | None = None,
) -> ParityResult:
    """Compares two finished traces.

    Args:
        legacy, modern: Traces of the two sides.
        command: Script and its arguments, for the report.
        replaying: True if the modern side had the legacy side's batches.
        replicas: Number of replicas on the modern side.
        thresholds: Largest differences that count as equal.
        micro: Number of micro-batches of a step on the modern side.
        sides: Names of the two sides, for the findings.
        recorded: Trace of the side whose batches and values the others had; by default the legacy side's.

    Returns:
        The result; its verdict is "different" exactly if there are findings that neither random numbers nor batches of hooks explain.

    Raises:
        BridgeError: The script called no Estimator.
    """
    if not any(legacy.events("train", "evaluated", "predicted")):
        raise BridgeError(
            "The script called no Estimator, so there is nothing to compare.",
            expected="train, evaluate, predict or train_and_evaluate of a tf.estimator.Estimator",
            fix="Check the script and its arguments.",
        )
    trained = {event["call"]: event["model_dir"] for event in legacy.events("trained")}
    steps = [(call, _steps(legacy, call), _steps(modern, call)) for call in trained]
    folders = list(trained.values())
    later = {call for number, call in enumerate(trained) if folders[number] in folders[:number]}
    losses = tuple(
        LossPoint(old.step, old.loss, new.loss) for _, olds, news in steps for old, new in zip(olds, news, strict=False)
    )
    metrics, variables = tuple(pair_metrics(legacy, modern)), tuple(_variables(legacy, modern))
    predictions = tuple(_predictions(legacy, modern, thresholds))
    exports = list(_exports(legacy, modern, recorded or legacy, thresholds))
    findings = [
        *_calls(legacy, modern),
        *_unpaired_metrics(legacy, modern),
        *(
            finding
            for call, old, new in steps
            for finding in _training(legacy, modern, call, old, new, sides, thresholds if call in later else None)
        ),
        *loss_findings(losses, thresholds, sides),
        *metric_findings(metrics, thresholds, sides),
        *_variable_findings(variables, thresholds),
        *_prediction_findings(legacy, modern, predictions),
        *(found for found in exports if not isinstance(found, str)),
    ]
    reasons = list(_reasons(legacy, modern, max(replicas, micro)))
    looked_at = [
        old.batch == new.batch for _, olds, news in steps for old, new in zip(olds, news, strict=False) if new.batch is not None
    ]
    verdict: Verdict = "equal" if not findings else "not comparable" if reasons else "different"
    return ParityResult(
        command=command,
        mode="replay" if replaying else "free-run",
        verdict=verdict,
        thresholds=thresholds,
        losses=losses,
        metrics=metrics,
        variables=variables,
        findings=tuple(sorted(findings, key=lambda finding: float("inf") if finding.step is None else finding.step)),
        notes=(
            *_notes(legacy, modern, recorded or legacy, replaying, replicas, reasons),
            *(
                [f"The batches of {sum(looked_at)} of {len(looked_at)} steps have the same digest on both sides."]
                if looked_at
                else []
            ),
            *(found for found in exports if isinstance(found, str)),
        ),
        predictions=predictions,
        reason=reasons[0] if verdict == "not comparable" else "",
    )


def _steps(trace: Trace, call: str) -> list[_Step]:
    return [_Step(one["step"], one["loss"], one["batch"]) for one in trace.events("step") if one["call"] == call]


def _training(
    legacy: Trace,
    modern: Trace,
    call: str,
    old: Sequence[_Step],
    new: Sequence[_Step],
    sides: tuple[str, str],
    trained: Thresholds | None,
) -> Iterator[ParityFinding]:
    first = old[0].step if old else 0
    # A later training starts from what an earlier one ended with, so its start is judged as an end.
    yield from initial_values(legacy.values(call, "initial"), modern.values(call, "initial"), first - 1, trained)
    yield from _batches(old, new, sides)
    yield from first_updates(legacy, modern, call, first, sides)
    if len(old) != len(new):
        step = first + min(len(old), len(new))
        yield ParityFinding("calls", f"{call}: {sides[0]} trained {len(old)} steps, {sides[1]} {len(new)}.", step)


def _batches(legacy: Sequence[_Step], modern: Sequence[_Step], sides: tuple[str, str]) -> Iterator[ParityFinding]:
    pairs = ((old.step, old.batch, new.batch) for old, new in zip(legacy, modern, strict=False))
    different = ((step, new) for step, old, new in pairs if new not in {old, None})  # None: nobody looked at the batch
    for step, batch in different:
        other = next((old.step for old in legacy if old.batch == batch), None)
        which = f"one that {sides[0]} never saw" if other is None else f"the one that {sides[0]} trained on at step {other}"
        yield ParityFinding("batch", f"The {sides[1]} side trained on another batch: {which}.", step)
        return


def loss_findings(
    losses: Sequence[LossPoint], thresholds: Thresholds, sides: tuple[str, str] = SIDES
) -> Iterator[ParityFinding]:
    """Yields one finding if losses differ."""
    outside = [point for point in losses if not thresholds.accept(point.legacy, point.modern)]
    for first in outside[:1]:
        values = f"{sides[0]} {first.legacy:.9g}, {sides[1]} {first.modern:.9g}"
        yield ParityFinding("loss", f"The losses differ: {values} ({len(outside)} of {len(losses)} steps outside).", first.step)


def pair_metrics(legacy: Trace, modern: Trace) -> Iterator[MetricPair]:
    """Yields the metrics that both sides have in the same evaluation."""
    new = evaluations_of(modern)
    for key, metrics in evaluations_of(legacy).items():
        for metric, value in metrics.items():
            other = new.get(key, {}).get(metric)
            if other is not None:
                yield MetricPair(evaluation_label(key), key[1], metric, value, other)


def _unpaired_metrics(legacy: Trace, modern: Trace) -> list[ParityFinding]:
    """Returns a finding for each metric without a counterpart in the same evaluation."""
    old, new = (
        {(*key, metric) for key, metrics in evaluations_of(trace).items() for metric in metrics} for trace in (legacy, modern)
    )
    return [
        ParityFinding("metric", f"{metric} of evaluation {name or 'eval'!r} exists on one side only.", step)
        for name, step, _, metric in sorted(old ^ new)
    ]


def evaluation_label(key: tuple[str, int, int]) -> str:
    """Returns the name of an evaluation, with its number from the second of that name and step on.

    Args:
        key: Key of ``evaluations_of``.

    Example:
        >>> evaluation_label(("", 100, 0)), evaluation_label(("", 100, 1)), evaluation_label(("test", 100, 1))
        ('', 'eval 2', 'test 2')
    """
    name, _, number = key
    return f"{name or 'eval'} {number + 1}" if number else name


def evaluations_of(trace: Trace) -> dict[tuple[str, int, int], dict[str, float]]:
    """Returns the metrics of each evaluation, by its name, its step, and its number among those of that name and step."""
    found: dict[tuple[str, int, int], dict[str, float]] = {}
    seen: Counter[tuple[str, int]] = Counter()
    for event in trace.events("evaluated"):
        metrics = dict(event["metrics"])
        name, step = event["name"], int(metrics.pop("global_step"))
        found[name, step, seen[name, step]] = metrics
        seen[name, step] += 1
    return found


def metric_findings(
    metrics: Sequence[MetricPair], thresholds: Thresholds, sides: tuple[str, str] = SIDES
) -> Iterator[ParityFinding]:
    """Yields a finding for each metric that differs."""
    for pair in metrics:
        if not thresholds.accept(pair.legacy, pair.modern):
            values = f"{sides[0]} {pair.legacy:.9g}, {sides[1]} {pair.modern:.9g}"
            yield ParityFinding("metric", f"{pair.metric} of evaluation {pair.evaluation or 'eval'!r}: {values}.", pair.step)


def _variables(legacy: Trace, modern: Trace) -> Iterator[VariableDiff]:
    new = {event["call"]: event["checkpoint"] for event in modern.events("trained")}
    trained = _last_trainings(legacy)
    for event in trained:
        if event["checkpoint"] and new.get(event["call"]):
            for variable in compare_values(event["checkpoint"], new[event["call"]]):
                yield variable if len(trained) == 1 else dataclasses.replace(variable, name=f"{event['call']}: {variable.name}")


def _last_trainings(trace: Trace) -> list[dict[str, Any]]:
    """Returns the last training of each model_dir."""
    last = {event["model_dir"]: event for event in trace.events("trained")}
    return list(last.values())


def _variable_findings(variables: Sequence[VariableDiff], thresholds: Thresholds) -> Iterator[ParityFinding]:
    outside = [v for v in variables if v.max_abs_diff is None or not thresholds.accept_variable(v.max_abs_diff, v.largest)]
    if outside:
        worst = max(outside, key=lambda v: float("inf") if v.max_abs_diff is None else v.max_abs_diff)
        difference = worst.note or f"max abs_diff {worst.max_abs_diff:.3g}"
        count = f"{len(outside)} of {len(variables)}"
        yield ParityFinding("variable", f"{count} final variables differ, {worst.name} most ({difference}).")


def _calls(legacy: Trace, modern: Trace) -> Iterator[ParityFinding]:
    of_exports = [] if any(legacy.events("versions")) else ["exported"]  # a reference does not record them
    kinds = "train", "evaluated", "predicted", *of_exports
    old, new = ([event["call"] for event in trace.events(*kinds)] for trace in (legacy, modern))
    missing = [call for call in old if call not in new] + [call for call in new if call not in old]
    if missing:
        yield ParityFinding("calls", f"Only one side made these calls: {', '.join(missing)}.")
    saved = {event["call"]: bool(event["checkpoint"]) for event in modern.events("trained")}
    for event in _last_trainings(legacy):
        if saved.get(event["call"], bool(event["checkpoint"])) != bool(event["checkpoint"]):
            yield ParityFinding("calls", f"{event['call']}: only one side left a checkpoint.")


def _predictions(legacy: Trace, modern: Trace, thresholds: Thresholds) -> Iterator[PredictionGroup]:
    for event in legacy.events("predicted"):
        call = event["call"]
        if not (legacy.predictions(call).exists() and modern.predictions(call).exists()):
            continue
        with np.load(legacy.predictions(call)) as old, np.load(modern.predictions(call)) as new:
            for key in dict.fromkeys([*old.files, *new.files]):
                is_there = key in old.files and key in new.files
                name, is_paired = key.removeprefix("key:"), is_there and old[key].shape == new[key].shape
                is_equal = is_there and equal_arrays(old[key], new[key], thresholds)
                yield PredictionGroup(call, name, is_equal, max_abs_diff(old[key], new[key]) if is_paired else None)


def _prediction_findings(legacy: Trace, modern: Trace, groups: Sequence[PredictionGroup]) -> Iterator[ParityFinding]:
    counts = {event["call"]: event.get("count") for event in modern.events("predicted")}
    for event in legacy.events("predicted"):
        before, after = event.get("count"), counts.get(event["call"])
        if before is not None and after is not None and before != after:
            yield ParityFinding("prediction", f"{event['call']}: {before:,} predictions on one side, {after:,} on the other.")
    for group in groups:
        if not group.is_equal:
            yield ParityFinding("prediction", f"{group.call}: the predictions {group.name!r} differ.")


def uncompared_predictions(recorded: Trace) -> Iterator[str]:
    """Yields a note for each call with more predictions than are kept."""
    for event in recorded.events("predicted"):
        if event.get("count", 0) > MAX_PREDICTIONS:
            yield f"{event['call']}: the first {MAX_PREDICTIONS:,} of {event['count']:,} predictions are compared."


def _exports(legacy: Trace, modern: Trace, recorded: Trace, thresholds: Thresholds) -> Iterator[ParityFinding | str]:
    """Yields what differs between the exports of both sides, and notes of what was not compared."""
    new = {event["call"]: event for event in modern.events("exported")}
    for event in legacy.events("exported"):
        if other := new.get(event["call"]):
            with quiet_start_up():
                from estimator_bridge.parity.exports.recorded import answer_findings

            names = sorted(event["signatures"].keys() | other["signatures"].keys())
            unequal = [name for name in names if event["signatures"].get(name) != other["signatures"].get(name)]
            if unequal:
                yield ParityFinding("export", f"{event['call']}: the signatures {', '.join(unequal)} differ.")
            pair = event["variables"], other["variables"]
            variables = list(compare_values(*pair)) if None not in pair else []
            if (pair[0] is None) != (pair[1] is None):
                yield ParityFinding("export", f"{event['call']}: only one side's SavedModel has variables.")
            for finding in _variable_findings(variables, thresholds):
                yield dataclasses.replace(finding, level="export", message=f"{event['call']}: {finding.message}")
            yield from answer_findings(event, other, recorded, thresholds)


def _reasons(legacy: Trace, modern: Trace, parts: int) -> Iterator[str]:
    """Yields why the two sides may differ although both are right: batches of hooks, and random numbers that they cannot draw alike."""
    if any(modern.events("unrecorded")):
        yield "Session hooks read batches of their own, which were not recorded. Compare with --free-run."
    for event in legacy.events("random"):
        noise = [f"random numbers drawn inside {name}" for name in event["functions"]]
        if parts > 1 or event.get("unseeded"):
            noise += [f"{name}, which each worker or part of a batch draws for itself" for name in event["in_step"]]
        yield from (f"The two sides cannot draw the same random numbers: {one}." for one in noise)


def limits(recorded: Trace) -> Iterator[str]:
    """Yields a note for each training that --steps or Ctrl-C has ended."""
    for steps in dict.fromkeys(event["steps"] for event in recorded.events("limited")):
        yield (
            f"Only the first {steps} training steps were compared, and what follows them up to the next training: not whether both "
            "sides train equally long."
        )
    if any(recorded.events("repeated")):
        yield (
            "After these steps the script evaluates the same again and again, as if it waited for more. The third such evaluation ended it; "
            "what would follow was not compared."
        )


def _notes(
    legacy: Trace, modern: Trace, recorded: Trace, replaying: bool, replicas: int, reasons: Sequence[str]
) -> Iterator[str]:
    name = recorded.folder.name
    yield f"Both sides start from the {name} side's initial values and seed random operations by their name."
    if replaying:
        size = decimal(sum(file.stat().st_size for file in recorded.folder.glob("**/batches/*")))
        yield f"The modern side trains and evaluates on the batches that the {name} side recorded ({size})."
    yield from limits(legacy)
    if replicas > 1:
        yield f"The modern side splits each batch over {replicas} replicas."
    if any(event["checkpoint"] is None for event in _last_trainings(legacy)):
        yield "A training left no checkpoint in its model_dir, so the final variables were not compared."
    yield from uncompared_predictions(legacy)
    yield from reasons
    for side, trace in (("legacy", legacy), ("modern", modern)):
        yield from dict.fromkeys(f"{side}: {event['message']}" for event in trace.events("note"))
