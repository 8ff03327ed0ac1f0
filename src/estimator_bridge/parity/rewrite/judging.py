"""The verdict on a rewrite: losses between anchors, the first updates, metrics and predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.judge import equal_arrays, loss_findings, metric_findings, pair_metrics
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.report.spelling import first_three
from estimator_bridge.parity.result import (
    LossPoint,
    MetricPair,
    ParityFinding,
    ParityResult,
    Thresholds,
    VariableDiff,
    Verdict,
    rel_diff,
)
from estimator_bridge.parity.rewrite.gathering import NewNames, gather, values_at
from estimator_bridge.parity.rewrite.inputs import judge_inputs
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.values import ROUNDING, SHARE, max_abs_diff

SIDES = ("old", "new")
NOISE = 1e-5  # a gradient below this share of the largest one is rounding: e.g. that of a bias before batch norm


def judge_rewrite(
    old: Trace, new: Trace, free: Trace, *, plan: RewritePlan, command: tuple[str, ...], thresholds: Thresholds
) -> ParityResult:
    """Compares an old script with its rewrite.

    Args:
        old: Trace of the old side.
        new: Trace of the new side, with anchors.
        free: Trace of the new side without anchors.
        plan: Comparison.
        command: Old script and its arguments, for the report.
        thresholds: Largest differences that count as equal.

    Returns:
        The result.

    Raises:
        BridgeError: The old script called no Estimator.
    """
    if not any(old.events("train", "evaluated", "predicted")):
        raise BridgeError(
            "The old script called no Estimator, so there is nothing to compare.",
            expected="train, evaluate, predict or train_and_evaluate of a tf.estimator.Estimator",
            fix="Check the script and its arguments.",
        )
    names = NewNames(new)
    losses = pair_losses(old, new)
    metrics, metric_notes = _metrics(old, new, thresholds)
    updates, update_notes = _updates(old, new, names)
    predictions, prediction_notes = _predictions(old, new, thresholds)
    of_inputs, input_notes = judge_inputs(old, new)
    outside = list(loss_findings(losses, thresholds, SIDES))
    iterations = list(_iterations(old, new))
    findings = [
        *_unpaired(old, names),
        *_other_slots(old, new, names),
        *of_inputs,
        *updates,
        *outside,
        *_lengths(old, new),
        *(iterations if outside else []),
        *metric_findings(metrics, thresholds, SIDES),
        *predictions,
    ]
    random = list(_unequal_noise(old, new))
    verdict: Verdict = "not comparable" if random and findings else "different" if findings else "equal"
    if not losses and not metrics and not list(new.events("predicted")):
        verdict, findings = "not comparable", [ParityFinding("calls", "No loss, metric or prediction has a counterpart.")]
    notes = [
        f"The new side is {' '.join([str(plan.script), *plan.script.args])}.",
        *_anchor_notes(old, names, plan),
        *_free_notes(old, free, thresholds),
        *metric_notes,
        *update_notes,
        *prediction_notes,
        *input_notes,
        *(f"Counted updates: {finding.message}" for finding in iterations if not outside),
        *random,
        *(event["message"] for event in new.events("note")),
        *(f"old: {event['message']}" for event in old.events("note")),
        *_other_notes(names, has_advice=bool(findings)),
    ]
    variables = tuple(_variables(old, new, names))
    ordered = sorted(findings, key=lambda finding: float("inf") if finding.step is None else finding.step)
    return ParityResult(
        command,
        "replay",
        verdict,
        thresholds,
        losses,
        tuple(metrics),
        variables,
        tuple(ordered),
        tuple(dict.fromkeys(notes)),
        new_side="new",
    )


def pair_losses(old: Trace, new: Trace) -> tuple[LossPoint, ...]:
    """Returns the losses of the steps that both sides took."""
    pairs = zip(old.events("step"), new.events("step"), strict=False)
    return tuple(LossPoint(here["step"], here["loss"], there["loss"]) for here, there in pairs)


def _unpaired(old: Trace, names: NewNames) -> Iterator[ParityFinding]:
    trained = {name for event in old.events("variables") for name, _, trainable in event["variables"] if trainable}
    missing = [name for name in names.paired.get("unmatched_old", ()) if name in trained]
    if missing:
        yield ParityFinding("initial values", f"Variables of the old script have no counterpart: {first_three(missing)}.", 0)
    new = {names.keys.get(name.partition(":")[0], name) for name in names.paired.get("trainable", ())}
    added = [key for key in names.paired.get("unmatched_new", ()) if key in new]
    if added:
        yield ParityFinding("initial values", f"Variables of the new script have no counterpart: {first_three(added)}.", 0)


def _other_slots(old: Trace, new: Trace, names: NewNames) -> Iterator[ParityFinding]:
    """Yields a finding if the new optimizer's slots begin with another constant: Adagrad's and Ftrl's accumulators.

    The new script gets the old values, so nothing else shows it.
    """
    if next(old.events("step"), {"step": 0})["step"] != 1:  # the old script goes on from a checkpoint
        return
    own, given = (values_at(new, names, kind, 0) for kind in ("at", "anchor"))
    slots = {names.of_key(key) for key in names.slots}
    found = []
    for name in sorted(slots & own.keys() & given.keys()):
        here, there = (np.unique(side[name]) for side in (given, own))
        if len(here) == len(there) == 1 and not np.isclose(here[0], there[0]):
            found.append(f"{name} begins with {here[0]:g} in the old script, {there[0]:g} in the new one")
    if found:
        yield ParityFinding("initial values", f"{first_three(found)} (initial_accumulator_value).", 0)


def _updates(old: Trace, new: Trace, names: NewNames) -> tuple[list[ParityFinding], list[str]]:
    """Compares what each of the first steps changed; both sides start it from the same values."""
    evidence = gather(old, new)
    start = next(old.events("step"), {"step": 1})["step"] - 1
    findings: list[ParityFinding] = []
    notes: list[str] = []
    slots = {names.of_key(key) for key in names.slots}
    for here, there in zip(evidence.old.steps, evidence.new.steps, strict=False):
        noise = _noise(here.gradients(), there.gradients())
        if noise:
            notes.append(f"The gradients of {first_three(noise)} are rounding, so their updates are not compared.")
        before, after, other = here.before(), here.after(), there.after()
        outside = [
            _ratio(name, after[name] - before[name], other[name] - before[name])
            for name in before
            if name not in noise
            and name not in slots
            and _differs(
                before, after, other, name, [side[name] for side in (here.gradients(), there.gradients()) if name in side]
            )
        ]
        if outside:
            message = f"The update of {len(outside)} of {len(before)} variables differs from the same values; new / old: "
            level: Any = "first update"
            findings.append(ParityFinding(level, f"{message}{first_three(outside)}.", start + here.index))
            break
    return findings, notes


def _differs(
    before: Mapping[str, Any], after: Mapping[str, Any], other: Mapping[str, Any], name: str, gradients: list[Any]
) -> bool:
    if name not in after or name not in other or not before[name].size or not np.issubdtype(before[name].dtype, np.floating):
        return False
    update = after[name].astype(np.float64) - before[name]
    tolerance = ROUNDING * max(1.0, float(np.max(np.abs(after[name])))) + SHARE * float(np.max(np.abs(update)))
    difference = np.abs(other[name].astype(np.float64) - after[name])
    return not float(np.max(np.where(_rounding(gradients, difference.shape), 0.0, difference))) <= tolerance


def _rounding(gradients: list[Any], shape: tuple[int, ...]) -> Any:
    """Returns True for each element whose gradient is rounding on both sides: Adam makes a whole step of it.

    The old side's gradient of a recurrent layer has another layout than the new side's, which is then looked at alone.
    """
    found = np.full(shape, any(gradient.shape == shape for gradient in gradients))
    for gradient in gradients:
        if gradient.shape == shape:
            found &= np.abs(gradient) < NOISE * float(np.max(np.abs(gradient), initial=0.0))
    return found


def _ratio(name: str, old: Any, new: Any) -> str:
    size = float(np.vdot(old, old))
    return f"{name} x{float(np.vdot(old, new)) / size:.4g}" if size else f"{name} (0 in the old script)"


def _noise(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Returns the variables whose gradient is rounding on both sides."""
    largest = {
        name: max(float(np.max(np.abs(side[name]))) if side[name].size else 0.0 for side in (old, new))
        for name in old
        if name in new
    }
    limit = NOISE * max(largest.values(), default=0.0)
    return [name for name, value in largest.items() if 0 < value < limit]


def _lengths(old: Trace, new: Trace) -> Iterator[ParityFinding]:
    before, after = (len(list(trace.events("step"))) for trace in (old, new))
    if before != after:
        yield ParityFinding("calls", f"The old script trains {before} steps, the new one {after}.", min(before, after) + 1)
    for event in new.events("excess"):
        message = f"{event['what']}: the old script has {event['old']} batches, the new one {event['new']}."
        yield ParityFinding("calls", message)


def _iterations(old: Trace, new: Trace) -> Iterator[ParityFinding]:
    for before, after in zip(old.events("step"), new.events("step"), strict=False):
        for counted in after["iterations"]:
            if counted != before["step"]:
                yield ParityFinding(
                    "variable",
                    f"The new optimizer counts {counted} updates after step {before['step']}. Keras adds one at the end of each epoch "
                    "if the size of the dataset is unknown; bias corrections and schedules move with it.",
                    before["step"],
                )
                return


def _metrics(old: Trace, new: Trace, thresholds: Thresholds) -> tuple[list[MetricPair], list[str]]:
    notes: list[str] = []
    batches = {event["call"]: event for event in old.events("evaluation")}
    pairs = list(pair_metrics(old, new))
    by_rows = {}
    for event in old.events("evaluated"):
        found = batches.get(event["call"], {"losses": []})
        if found["losses"]:
            by_rows[event["name"], int(event["metrics"].get("global_step", 0))] = float(
                np.average(found["losses"], weights=found["rows"])
            )
    compared = []
    for pair in pairs:
        weighted = by_rows.get((pair.evaluation, pair.step), pair.legacy)
        is_by_rows = not thresholds.accept(pair.legacy, pair.modern) and thresholds.accept(weighted, pair.modern)
        if pair.metric == "loss" and is_by_rows:
            notes.append(
                f"Keras weighs the evaluation loss by rows, Estimator by batches: {pair.legacy:.6g} is {weighted:.6g} by rows, "
                "which is compared."
            )
        compared.append(dataclasses.replace(pair, legacy=weighted) if pair.metric == "loss" and is_by_rows else pair)
    known = {(pair.evaluation, pair.metric) for pair in pairs}
    alone = [metric for event in old.events("evaluated") for metric in event["metrics"] if (event["name"], metric) not in known]
    alone = [metric for metric in dict.fromkeys(alone) if metric != "global_step"]
    if alone:
        notes.append(f"Not compared, since the new script gives no metrics of these names: {', '.join(alone)}.")
    return compared, notes


def _predictions(old: Trace, new: Trace, thresholds: Thresholds) -> tuple[list[ParityFinding], list[str]]:
    findings: list[ParityFinding] = []
    notes: list[str] = []
    done = {event["call"] for event in new.events("predicted")}
    for call in (event["call"] for event in old.events("predicted")):
        if call not in done or not old.predictions(call).exists():
            notes.append(f"{call} is not compared: the new script has no such call.")
            continue
        with np.load(old.predictions(call)) as before, np.load(new.predictions(call)) as after:
            pairs = list(_output_pairs(before, after))
            for name, here, there in pairs:
                if not equal_arrays(here, there[: len(here)], thresholds):
                    findings.append(ParityFinding("prediction", f"{call}: the predictions {name!r} differ."))
            if not pairs:
                notes.append(
                    f"{call} is not compared: no output of the new script has the name or shape of one of the old script's."
                )
    return findings, notes


def _output_pairs(before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields (name, old, new) for each output of one name; for a single output of the new script, the only one of its shape."""
    if after.files == ["key:"]:
        there = after["key:"]
        same = [
            key
            for key in before.files
            if before[key].shape == there[: len(before[key])].shape and before[key].dtype.kind == there.dtype.kind
        ]
        if len(same) == 1:
            yield same[0].removeprefix("key:"), before[same[0]], there
        return
    for key in before.files:
        if key in after.files:
            yield key.removeprefix("key:"), before[key], after[key]


def _unequal_noise(old: Trace, new: Trace) -> Iterator[str]:
    for side, trace in (("old", old), ("new", new)):
        names = [name for event in trace.events("random") for name in event["in_step"]]
        names += [name for event in trace.events("dropout") for name in event["loops"]]
        if names:
            yield f"Random operations of the {side} script cannot be made equal: {first_three(list(dict.fromkeys(names)))}."


def _variables(old: Trace, new: Trace, names: NewNames) -> Iterator[VariableDiff]:
    """Yields the differences at the last anchor, before the old script's values were given back."""
    indices = [event["index"] for event in old.events("anchor")]
    for index in reversed(indices):
        before, after = (values_at(new, names, kind, index) for kind in ("anchor", "at"))
        if before and after:
            for name in sorted(before):
                value = before[name]
                largest = float(np.max(np.abs(value))) if value.size and np.issubdtype(value.dtype, np.number) else 1.0
                yield VariableDiff(name, value.shape, max_abs_diff(value, after[name]), f"at step {index}", largest)
            return


def _anchor_notes(old: Trace, names: NewNames, plan: RewritePlan) -> Iterator[str]:
    anchors = list(old.events("anchor"))
    every = max((event["every"] for event in old.events("variables")), default=plan.anchor)
    if anchors:
        size = sum(event["size"] for event in anchors)
        yield f"The old side's values are given to the new side at {len(anchors)} steps: 1, 2, 3 and each {every}th ({size / 1e6:.3g} MB)."
    if every != plan.anchor:
        yield f"--anchor {plan.anchor} would need more than --anchor-limit; it became {every}."
    last = max((event["index"] for event in anchors), default=0)
    steps = len(list(old.events("step")))
    if steps - last >= every:
        yield f"After step {last} there are no anchors: --anchor-limit is reached."
    pairs = names.paired.get("matches", ())
    how: dict[str, int] = {}
    for _, _, way in pairs:
        how[way] = how.get(way, 0) + 1
    yield f"{len(pairs)} variables are paired: " + ", ".join(f"{count} by {way}" for way, count in how.items()) + "."


def _free_notes(old: Trace, free: Trace, thresholds: Thresholds) -> Iterator[str]:
    points = pair_losses(old, free)
    if points:
        worst = max(points, key=lambda point: rel_diff(point.legacy, point.modern))
        outside = sum(not thresholds.accept(point.legacy, point.modern) for point in points)
        yield (
            f"Without anchors, {outside} of {len(points)} losses are outside; the largest rel_diff is "
            f"{rel_diff(worst.legacy, worst.modern):.2g}, at step {worst.step}. This does not decide the verdict."
        )


def _other_notes(names: NewNames, has_advice: bool) -> Iterator[str]:
    slots = [key for key in names.paired.get("unmatched_new", ()) if key in names.slots]
    if slots:
        yield f"The old script has no values for these slots of the new optimizer: {first_three(slots)}."
    warnings = names.paired.get("warnings", ())
    yield from (warning for warning in warnings if has_advice or warning.startswith("forget_bias"))
