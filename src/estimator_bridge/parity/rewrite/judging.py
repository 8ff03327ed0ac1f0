"""The verdict on a rewrite: losses between anchors, the first updates, metrics and predictions."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import re
from array import array
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.causes.cause import shown_name
from estimator_bridge.parity.causes.measures import Fit, gradient_fits, known_elements, rounding_alone, update_fits
from estimator_bridge.parity.causes.optimizers.hyperparameters import TABLE, differences, initial_accumulators
from estimator_bridge.parity.causes.optimizers.updates import learning_rate
from estimator_bridge.parity.causes.structure.batches import batch_order, batch_size
from estimator_bridge.parity.causes.structure.initial_values import (
    initial_spreads,
    initial_values,
    lost_values,
    read_values,
    set_values,
)
from estimator_bridge.parity.causes.table import first_cause
from estimator_bridge.parity.evidence import Evidence, MetricEvidence, StepEvidence
from estimator_bridge.parity.exports.rewritten import export_findings
from estimator_bridge.parity.judge import (
    evaluation_label,
    evaluations_of,
    limits,
    loss_findings,
    metric_findings,
    pair_metrics,
    uncompared_predictions,
)
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.report.spelling import count, first_three
from estimator_bridge.parity.report.summary import measure, severity
from estimator_bridge.parity.result import (
    AnchorWindow,
    GradientPair,
    LossPoint,
    MetricPair,
    ParityFinding,
    ParityResult,
    PredictionGroup,
    Thresholds,
    VariableDiff,
    Verdict,
    WindowVerdict,
    rel_diff,
)
from estimator_bridge.parity.rewrite.gathering import NewNames, gather, minimizes_another_loss, old_losses, values_at
from estimator_bridge.parity.rewrite.input_findings import judge_inputs
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.values import ROUNDING, equal_arrays, max_abs_diff

SIDES = ("old", "new")
ROUNDING_LIMIT = 0.1  # largest rel_diff that is put down to rounding
ROUNDING_GROWTH = 10.0  # largest multiple of what an error in the last place grows to that still counts as rounding
OWN_PARTING = 3.0  # largest multiple of the way that a variable parts by itself from values with errors in their last place
_COUNTS = re.compile(r"(^|/)(beta[12]_power|global_step)(_\d+)?$")
"""Variables that follow from the number of steps."""
_ROWS_FOR_TIES = 100  # of an evaluation, at least: one row of fewer is too large a share to be put down to rounding
_SINGLE, _UNSURE_ROWS = 2**-22, 0.1  # error of a float32 share; largest error with which a number of rows is known to be whole
_ENOUGH_UPDATES = 3  # of a variable that differ: some gradients are rounding in single steps
TINY = 1e-30  # divisor for a variable of zeros
DRIFT = 0.1  # largest share of what a variable moved since the last anchor that rounding explains


def judge_rewrite(
    old: Trace,
    new: Trace,
    free: Trace,
    *,
    plan: RewritePlan,
    command: tuple[str, ...],
    thresholds: Thresholds,
    shaken: Trace | None = None,
    looked: Trace | None = None,
) -> ParityResult:
    """Compares an old script with its rewrite.

    Args:
        old: Trace of the old side.
        new: Trace of the new side, with anchors.
        free: Trace of the new side without anchors.
        plan: Comparison.
        command: Old script and its arguments, for the report.
        thresholds: Largest differences that count as equal.
        shaken: Trace of the new side with anchors whose values differ in their last place.
        looked: Trace of the new side's first step, with what its forward pass computes.

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
    names, evidence = NewNames(new), gather(old, new, looked)
    losses = pair_losses(old, new)
    metrics, metric_notes, not_compared = _metrics(old, new, thresholds)
    by_one_row = _by_one_row(old, new, metrics, thresholds)
    differing = [pair for pair in metrics if pair not in by_one_row and not thresholds.accept(pair.legacy, pair.modern)]
    updates, update_notes = _updates(evidence)
    outputs, prediction_notes, unpredicted = _predictions(old, new, thresholds)
    predictions = [
        ParityFinding("prediction", f"{group.call}: the predictions {group.name!r} differ.")
        for group in outputs
        if not group.is_equal
    ]
    of_inputs, input_notes = judge_inputs(new)
    of_exports, export_notes, unexported = export_findings(old, new, (0, *evidence.anchored), thresholds)
    within = _within_freely(old, free, thresholds)
    rounded = {point for point in losses if point.step in within and _may_be_rounding(point, thresholds)}
    if shaken:
        rounded |= _grown_from_rounding(losses, new, shaken, evidence, thresholds)
    if rounded:
        pairs = zip(losses, evidence.old.losses, evidence.new.losses, strict=False)
        kept = array("d", (here if point in rounded else there for point, here, there in pairs))
        evidence = dataclasses.replace(evidence, new=dataclasses.replace(evidence.new, losses=kept))
    outside = list(loss_findings([point for point in losses if point not in rounded], thresholds, SIDES))
    iterations = list(_iterations(old, new))
    later_updates, later_steps = _later_updates(new, names, evidence, shaken)
    findings = [
        *_unpaired(old, names, evidence),
        *_inputs(evidence),
        *of_inputs,
        *updates,
        *outside,
        *_lengths(old, new),
        *(iterations if outside else []),
        *later_updates,
        *_final_variables(old, new, names, evidence, shaken),
        *metric_findings(differing, thresholds, SIDES),
        *predictions,
        *of_exports,
    ]
    random = [*_unequal_noise(old, new), *(_ambiguous_noise(old) if findings else ())]
    verdict: Verdict = "not comparable" if random and findings else "different" if findings else "equal"
    if not losses and not metrics and not list(new.events("predicted")):
        verdict, findings = "not comparable", [ParityFinding("calls", "No loss, metric or prediction has a counterpart.")]
    evidence = dataclasses.replace(
        evidence,
        metrics=tuple(MetricEvidence(one.evaluation, one.metric, one.step, one.legacy, one.modern) for one in differing),
        predictions=tuple(finding.message for finding in predictions),
    )
    spreads = list(initial_spreads(evidence))
    notes = [
        f"The new side is {' '.join([str(plan.script), *plan.script.args])}.",
        *(
            ["The losses are those that both sides minimize; the old script reports another one."]
            if minimizes_another_loss(old, new)
            else []
        ),
        *_anchor_notes(old, names, plan),
        *_free_notes(old, free, thresholds),
        *limits(old),
        *_rounding_notes(rounded),
        *metric_notes,
        *by_one_row.values(),
        *update_notes,
        *prediction_notes,
        *export_notes,
        *uncompared_predictions(old),
        *input_notes,
        *(f"Counted updates: {finding.message}" for finding in iterations if not outside),
        *random,
        *([] if findings else _without_effect(evidence)),
        *_not_shuffled(evidence),
        *spreads,
        *(event["message"] for event in new.events("note")),
        *(f"old: {event['message']}" for event in old.events("note")),
        *_other_notes(names),
    ]
    variables = tuple(_variables(old, new, names))
    # A finding has the first of its steps alone, and the table of windows needs all of them.
    parted = [point.step for point in losses if point not in rounded and not thresholds.accept(point.legacy, point.modern)]
    steps_outside = [*parted, *later_steps, *(finding.step for finding in findings if finding.step is not None)]
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
        cause=first_cause(evidence) if verdict == "different" else None,
        not_compared=(
            *not_compared,
            *unpredicted,
            *unexported,
            *_left_out(old, names, evidence),
            *(["initial values, which the new script draws otherwise"] if spreads else []),
            *(["all from the training of a second model on"] if any(old.events("another model")) else []),
        ),
        anchors=tuple(evidence.start + index for index in evidence.anchored),
        windows=tuple(_windows(new, names, evidence, losses, steps_outside, rounded)),
        gradients=tuple(_gradients(evidence)),
        predictions=tuple(outputs),
    )


def pair_losses(old: Trace, new: Trace) -> tuple[LossPoint, ...]:
    """Returns the losses of the steps that both sides took."""
    pairs = zip(old.events("step"), old_losses(old, new), new.events("step"), strict=False)
    return tuple(LossPoint(here["step"], loss, there["loss"]) for here, loss, there in pairs)


def _grown_from_rounding(
    losses: tuple[LossPoint, ...], new: Trace, shaken: Trace, evidence: Evidence, thresholds: Thresholds
) -> set[LossPoint]:
    """Returns the losses outside that differ no more than the new side's own if the values before have an error in their last place.

    A fault shows at once or grows from more than that. So each step counts with the largest difference since the last anchor, up to it.
    """
    explained: set[LossPoint] = set()
    largest = 0.0
    for number, (point, own, other) in enumerate(zip(losses, new.events("step"), shaken.events("step"), strict=False)):
        largest = max(0.0 if number in evidence.anchored else largest, abs(own["loss"] - other["loss"]))
        if _may_be_rounding(point, thresholds) and abs(point.legacy - point.modern) <= ROUNDING_GROWTH * largest:
            explained.add(point)
    return explained


def _windows(
    new: Trace,
    names: NewNames,
    evidence: Evidence,
    losses: Sequence[LossPoint],
    steps_outside: Sequence[int],
    rounded: Collection[LossPoint],
) -> Iterator[AnchorWindow]:
    """Yields the steps between the anchors of a rewrite."""
    first = zip(evidence.old.steps, evidence.new.steps, strict=False)
    updates = [evidence.start + pair[0].index for pair in first if any(fit.differs for fit in _weight_fits(evidence, *pair))]
    outside = sorted([*updates, *steps_outside])
    by_rounding = sorted(point.step for point in rounded)
    ignored = evidence.slots | rounding_alone(evidence)
    ends = dict.fromkeys([*evidence.anchored, len(losses)])
    for before, after in itertools.pairwise([0, *(index for index in ends if 0 < index <= len(losses))]):
        points = losses[before:after]
        steps = points[0].step, points[-1].step
        verdict: WindowVerdict = (
            "outside" if _has_any(outside, *steps) else "rounding" if _has_any(by_rounding, *steps) else "within"
        )
        largest = max((measure(point.legacy, point.modern, Thresholds()).rel_diff for point in points), key=severity)
        part, name = _largest_part(new, names, ignored, after)
        yield AnchorWindow(evidence.start + before, len(points), largest, part, name, verdict)


def _has_any(ordered: Sequence[int], first: int, last: int) -> bool:
    """Returns True if one of some ordered numbers lies between two others."""
    return bisect.bisect_left(ordered, first) < bisect.bisect_right(ordered, last)


def _largest_part(new: Trace, names: NewNames, ignored: Collection[str], index: int) -> tuple[float | None, str]:
    """Returns the largest difference of a variable at an anchor, as a share of its largest value, and its name; (None, "") without one."""
    here, there = (values_at(new, names, kind, index) for kind in ("anchor", "at"))
    both = [(name, value, there[name]) for name, value in here.items() if name in there and name not in ignored]
    parts = [
        (max_abs_diff(value, other) / max(float(np.max(np.abs(value))), TINY), name)
        for name, value, other in both
        if value.size and np.issubdtype(value.dtype, np.floating) and value.shape == other.shape
    ]
    return max(parts, key=lambda part: severity(part[0]), default=(None, ""))


def _may_be_rounding(point: LossPoint, thresholds: Thresholds) -> bool:
    """Returns True for a loss outside that is near enough: beyond that, nothing tells rounding from a fault."""
    return not thresholds.accept(point.legacy, point.modern) and rel_diff(point.legacy, point.modern) <= ROUNDING_LIMIT


def _within_freely(old: Trace, free: Trace, thresholds: Thresholds) -> set[int]:
    """Returns the steps up to which all losses without anchors are within."""
    points = itertools.takewhile(lambda point: thresholds.accept(point.legacy, point.modern), pair_losses(old, free))
    return {point.step for point in points}


def _rounding_notes(points: Collection[LossPoint]) -> Iterator[str]:
    if points:
        worst = max(points, key=lambda point: (rel_diff(point.legacy, point.modern), -point.step))
        yield (
            f"{len(points)} losses are outside by rounding that grows between anchors, by a rel_diff of up to "
            f"{rel_diff(worst.legacy, worst.modern):.2g} at step {worst.step}: without anchors they and all before them are within, or the "
            "new side's own losses part as far if the values that it is given differ in their last place. --anchor 1 leaves rounding no step "
            "to grow."
        )


def _unpaired(old: Trace, names: NewNames, evidence: Evidence) -> Iterator[ParityFinding]:
    """Yields trainable variables that one side alone has, but for those on which no loss depends."""
    trained = {name for event in old.events("variables") for name, _, trainable in event["variables"] if trainable}
    unmatched = names.paired.get("unmatched_old", ())
    unread = evidence.old.unread(unmatched)
    missing = [name for name in unmatched if name in trained - unread]
    if missing:
        yield ParityFinding("initial values", f"Variables of the old script have no counterpart: {first_three(missing)}.", 0)
    new = {names.keys.get(name, name) for name in names.paired.get("trainable", ())}
    unmatched = names.paired.get("unmatched_new", ())
    unread = evidence.new.unread(unmatched)
    added = [key for key in unmatched if key in new - unread]
    if added:
        shown = first_three([*map(shown_name, added)])
        yield ParityFinding("initial values", f"Variables of the new script have no counterpart: {shown}.", 0)


def _left_out(old: Trace, names: NewNames, evidence: Evidence) -> Iterator[str]:
    """Yields what the old script has beside its weights and the new one has nowhere that the comparison sees."""
    trained = {name for event in old.events("variables") for name, _, trainable in event["variables"] if trainable}
    left = [name for name in names.paired.get("unmatched_old", ()) if name not in trained and not _COUNTS.search(name)]
    if left:
        yield f"variables of the old script that are not trained: {first_three(left)}"
    sides = (("unmatched_old", evidence.old), ("unmatched_new", evidence.new))
    unread = [name for key, side in sides for name in side.unread(names.paired.get(key, ()))]
    if unread:
        yield f"variables of one side on which no loss depends: {first_three(sorted(map(shown_name, unread)))}"
    slots = [source for source, target, _ in names.paired.get("slots", ()) if source and not target]
    if slots:
        yield f"slots of the old optimizer that the new one keeps elsewhere or not at all: {first_three(slots)}"


def _inputs(evidence: Evidence) -> Iterator[ParityFinding]:
    """Yields what losses may not show: batches and initial slots, which the comparison replaces, and learning rates before an anchor."""
    for cause in (*batch_size(evidence), *batch_order(evidence)):
        yield ParityFinding("batch", cause.seen, cause.step)
    for cause in learning_rate(evidence):
        yield ParityFinding("first update", cause.seen, cause.step)
    rules = initial_accumulators, read_values, set_values, initial_values, lost_values
    for cause in (cause for rule in rules for cause in rule(evidence)):
        yield ParityFinding("initial values", cause.seen, cause.step)


def _gradients(evidence: Evidence) -> Iterator[GradientPair]:
    """Yields the gradients of the first step, but for those that are rounding."""
    for here, there in zip(evidence.old.steps[:1], evidence.new.steps[:1], strict=False):
        for fit in gradient_fits(here, there):
            yield GradientPair(fit.name, tuple(fit.shape), fit.old, fit.new, fit.ratio[0], fit.differs)


def _updates(evidence: Evidence) -> tuple[list[ParityFinding], list[str]]:
    """Compares what each of the first steps changed; both sides start it from the same values."""
    findings: list[ParityFinding] = []
    ignored = rounding_alone(evidence)
    for here, there in zip(evidence.old.steps, evidence.new.steps, strict=False):
        fits = _weight_fits(evidence, here, there)
        outside = [fit.spelled if fit.old else f"{fit.name} (0 in the old script)" for fit in fits if fit.differs]
        if outside:
            message = f"The update of {len(outside)} of {len(fits)} variables differs from the same values; new / old: "
            step = evidence.start + here.index
            findings.append(ParityFinding("first update", f"{message}{first_three(outside)}.", step))
            break
    note = f"The gradients of {first_three(sorted(ignored))} are rounding, so their updates are not compared."
    return findings, [note] if ignored else []


def _weight_fits(evidence: Evidence, old: StepEvidence, new: StepEvidence) -> list[Fit]:
    """Returns the updates of a step, without those of slots, and those by rounding alone."""
    left_out = evidence.slots | rounding_alone(evidence)
    return [fit for fit in update_fits(old, new) if fit.name not in left_out]


def _final_variables(
    old: Trace, new: Trace, names: NewNames, evidence: Evidence, shaken: Trace | None
) -> Iterator[ParityFinding]:
    """Compares the values after the last step, which no loss shows, and those at the new script's end."""
    last, steps = max(evidence.anchored, default=0), _length(old)
    if last != steps or _length(new) != steps or any(new.events("excess")):
        return
    before = max((index for index in evidence.anchored if index < last), default=0)
    trained, outside = _elsewhere(new, names, evidence, before, last, shaken)
    kept = _kept_elsewhere(new, names, evidence, before, last, shaken)
    if outside and last > len(evidence.old.steps):
        message = f"After the last step, {len(outside)} of {len(trained)} variables are elsewhere: {first_three(outside)}."
        yield ParityFinding("variable", message, evidence.start + last)
    elif kept:
        message = f"After the last step, {len(kept)} variables that no gradient trains are elsewhere: {first_three(kept)}."
        yield ParityFinding("variable", message, evidence.start + last)
    here, end = (values_at(new, names, kind, last) for kind in ("anchor", "end"))
    changed = [name for name in trained if name in end and not np.array_equal(end[name], here[name])]
    if changed:
        message = f"The new script changes {len(changed)} variables after its last step: {first_three(changed)}."
        yield ParityFinding("variable", message, evidence.start + last)


def _later_updates(
    new: Trace, names: NewNames, evidence: Evidence, shaken: Trace | None
) -> tuple[list[ParityFinding], list[int]]:
    """Compares the updates of later steps that begin and end with an anchor: no loss shows them, since the anchor takes them back.

    Returns:
        A finding if some updates differ, and the steps that have such an update.
    """
    trained: list[str] = []
    outside: dict[int, list[str]] = {}
    for before, after in itertools.pairwise(evidence.anchored):
        if after == before + 1 > len(evidence.old.steps):
            trained, differing = _elsewhere(new, names, evidence, before, after, shaken)
            outside |= {evidence.start + after: differing} if differing else {}
    counted = Counter(itertools.chain.from_iterable(outside.values()))
    found = [name for name, count in counted.items() if count >= _ENOUGH_UPDATES]
    steps = [step for step, differing in outside.items() if not set(found).isdisjoint(differing)]
    message = f"The updates of {len(found)} of {len(trained)} variables differ in later steps: {first_three(found)}."
    return [ParityFinding("variable", message, step) for step in steps[:1]], steps


def _elsewhere(
    new: Trace, names: NewNames, evidence: Evidence, before: int, after: int, shaken: Trace | None
) -> tuple[list[str], list[str]]:
    """Returns the variables that are trained between two anchors, and those of them that are not where the old script has them."""
    start, here, there, own = _between(new, names, before, after, shaken)
    first, ignored = list(zip(evidence.old.steps, evidence.new.steps, strict=False)), rounding_alone(evidence)
    trained = [name for name in evidence.new.trainable if name in start and name in there and name not in ignored]
    known = {name: known_elements(name, np.shape(here[name]), first) for name in trained}
    return trained, [name for name in trained if is_elsewhere(*(side[name][known[name]] for side in (start, here, there, own)))]


def _kept_elsewhere(
    new: Trace, names: NewNames, evidence: Evidence, before: int, after: int, shaken: Trace | None
) -> list[str]:
    """Returns the variables without gradients, such as moving averages, that are not where the old script has them."""
    start, here, there, own = _between(new, names, before, after, shaken)
    known = {*evidence.new.trainable, *evidence.slots}
    every = [name for name in start if name in here and name in there and name not in known]
    kept = [name for name in every if np.issubdtype(here[name].dtype, np.floating)]
    return [name for name in kept if is_elsewhere(*(side[name] for side in (start, here, there, own)))]


def _between(new: Trace, names: NewNames, before: int, after: int, shaken: Trace | None) -> tuple[dict[str, Any], ...]:
    """Returns the values of an anchor, of the next one, those that the new script has there, and has there from shaken values."""
    kinds = (("anchor", before), ("anchor", after), ("at", after))
    start, here, there = (values_at(new, names, kind, index) for kind, index in kinds)
    return start, here, there, there | (values_at(shaken, names, "at", after) if shaken else {})


def is_elsewhere(start: Any, here: Any, there: Any, own: Any) -> bool:
    """Returns True if a variable parts further than rounding lets it part.

    Args:
        start: Values of the old side at an anchor.
        here: Its values at the next one.
        there: Values of the new side there.
        own: Values of the new side there, if those that it was given had errors in their last place.
    """
    moved, apart, shaken = (float(np.linalg.norm(one - other)) for one, other in ((here, start), (there, here), (own, there)))
    return not apart <= max(DRIFT * moved + ROUNDING, OWN_PARTING * shaken if math.isfinite(shaken) else 0.0)


def _without_effect(evidence: Evidence) -> Iterator[str]:
    if evidence.drops_in_evaluation:
        yield "The new script's evaluation has dropout, and the old one's has none. No metric shows an effect."
    for row in TABLE:
        for _, new, here, there in differences(evidence, row):
            yield f"{row.key} of {new.name} is {here:.6g} in the old script and {there:.6g} in the new one. No step shows an effect."


def _not_shuffled(evidence: Evidence) -> Iterator[str]:
    is_other = any(batch.digests[0] != batch.digests[1] for batch in evidence.batches)
    if evidence.old.shuffles and evidence.new.shuffles is False and is_other:
        yield "The old script shuffles its training input, the new one reads rows in a fixed order. It ran on the old script's batches."


def _length(side: Trace) -> int:
    return sum(1 for _ in side.events("step"))


def _lengths(old: Trace, new: Trace) -> Iterator[ParityFinding]:
    before, after = (_length(trace) for trace in (old, new))
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


def _metrics(old: Trace, new: Trace, thresholds: Thresholds) -> tuple[list[MetricPair], list[str], list[str]]:
    notes: list[str] = []
    batches = {event["call"]: event for event in old.events("evaluation")}
    pairs = list(pair_metrics(old, new))
    by_rows, labels = {}, {}
    drawn: dict[tuple[str, int, str], list[str]] = {}
    for event, key in zip(old.events("evaluated"), evaluations_of(old), strict=True):
        found = batches.get(event["call"], {"losses": []})
        labels[event["call"]] = evaluation_label(key)
        if found["losses"]:
            by_rows[evaluation_label(key), key[1]] = float(np.average(found["losses"], weights=found["rows"]))
        drawn |= {(evaluation_label(key), key[1], name): drawing for name, drawing in _drawn(old, event["call"]).items()}
    compared, alone = [], []
    for pair in pairs:
        drawing = drawn.get((pair.evaluation, pair.step, pair.metric))
        if drawing and np.isfinite([pair.legacy, pair.modern]).all() and not thresholds.accept(pair.legacy, pair.modern):
            where = f"{pair.metric} of evaluation {pair.evaluation or 'eval'!r}"
            notes.append(f"{_random(where, drawing)} It is {pair.legacy:.6g}, and {pair.modern:.6g} in the new script.")
            alone.append(pair.metric)
            continue
        weighted = by_rows.get((pair.evaluation, pair.step), pair.legacy)
        is_by_rows = not thresholds.accept(pair.legacy, pair.modern) and thresholds.accept(weighted, pair.modern)
        if pair.metric == "loss" and is_by_rows:
            notes.append(
                f"Keras weighs the evaluation loss by rows, Estimator by batches: {pair.legacy:.6g} is {weighted:.6g} by rows, "
                "which is compared."
            )
        compared.append(dataclasses.replace(pair, legacy=weighted) if pair.metric == "loss" and is_by_rows else pair)
    known = {(pair.evaluation, pair.metric) for pair in pairs}
    evaluated = ((labels[event["call"]], metric) for event in old.events("evaluated") for metric in event["metrics"])
    missing = dict.fromkeys(metric for label, metric in evaluated if (label, metric) not in known and metric != "global_step")
    if missing:
        notes.append(f"Not compared, since no evaluation of the new script that was seen gives them: {', '.join(missing)}.")
    return compared, notes, list(dict.fromkeys([*missing, *alone]))


def _by_one_row(old: Trace, new: Trace, pairs: Sequence[MetricPair], thresholds: Thresholds) -> dict[MetricPair, str]:
    """Returns the shares of rows that differ by one row whose class rounding may change, each with a note.

    Both sides must have evaluated the same rows, with the same loss.
    """
    found: dict[MetricPair, str] = {}
    recorded = {event["call"]: event for event in old.events("evaluation")}
    as_long = {event["call"] for event in new.events("evaluated") if len(set(event.get("batches", (0, 1)))) == 1}
    for event, key in zip(old.events("evaluated"), evaluations_of(old), strict=True):
        of_call = [pair for pair in pairs if (pair.evaluation, pair.step) == (evaluation_label(key), key[1])]
        evaluation = recorded.get(event["call"], {})
        rows, ties = sum(evaluation.get("rows", ())), evaluation.get("ties", {})
        is_loss_equal = any(pair.metric == "loss" and thresholds.accept(pair.legacy, pair.modern) for pair in of_call)
        if event["call"] in as_long and is_loss_equal and rows >= _ROWS_FOR_TIES:
            for pair in of_call:
                tied = ties.get(pair.metric, 0)
                if tied and _differs_by_one(pair.legacy * rows, pair.modern * rows, rows * _SINGLE):
                    found[pair] = (
                        f"{pair.metric} of evaluation {pair.evaluation or 'eval'!r} at step {pair.step} differs by one row of {rows:,}, "
                        f"which is no difference: rounding may change the class of {count(tied, 'row')}."
                    )
    return found


def _differs_by_one(old: float, new: float, error: float) -> bool:
    """Returns True for two neighbouring whole numbers, each known but for an error."""
    if not math.isfinite(old) or not math.isfinite(new) or error > _UNSURE_ROWS:
        return False
    is_whole = all(abs(value - round(value)) <= error for value in (old, new))
    return is_whole and abs(round(old) - round(new)) == 1


def _drawn(old: Trace, call: str) -> dict[str, list[str]]:
    """Returns the random operations of the old script's call by the metric or output that needs them."""
    return next((event["names"] for event in old.events("drawn") if event["call"] == call), {})


def _may_be_drawn(here: Any, there: Any) -> bool:
    """Returns True for outputs of one shape and kind that are finite; no random operation explains another difference."""
    is_alike = here.shape == there.shape and here.dtype.kind == there.dtype.kind
    return is_alike and all(one.dtype.kind != "f" or bool(np.isfinite(one).all()) for one in (here, there))


def _random(what: str, names: list[str]) -> str:
    """Returns the note about a value that is not compared."""
    return f"Not compared, since the old script draws it anew each time: {what}, from {first_three(names)}."


def _predictions(old: Trace, new: Trace, thresholds: Thresholds) -> tuple[list[PredictionGroup], list[str], list[str]]:
    groups: list[PredictionGroup] = []
    notes: list[str] = []
    alone: list[str] = []
    done = {event["call"] for event in new.events("predicted")}
    for call in (event["call"] for event in old.events("predicted")):
        if call not in done or not old.predictions(call).exists():
            notes.append(f"{call} is not compared: the new script has no such call.")
            alone.append(call)
            continue
        with np.load(old.predictions(call)) as before, np.load(new.predictions(call)) as after:
            pairs, drawn = list(_output_pairs(before, after)), _drawn(old, call)
            for name, here, there in pairs:
                if name in drawn and _may_be_drawn(here, there) and not equal_arrays(here, there, thresholds):
                    notes.append(_random(f"{name} of {call}", drawn[name]))
                    alone.append(f"{name} of {call}")
                    continue
                link = _link(here, there, thresholds) if after.files == ["key:"] else ""
                if link:
                    notes.append(f"{call}: the new script predicts logits; their {link} is the old script's {name!r}.")
                is_equal = bool(link) or equal_arrays(here, there, thresholds)
                is_paired = here.shape == there.shape and not link
                groups.append(PredictionGroup(call, name, is_equal, max_abs_diff(here, there) if is_paired else None))
            if not pairs:
                alone.append(call)
                notes.append(
                    f"{call} is not compared: no output of the new script has the name or shape of one of the old script's."
                )
    return groups, notes, alone


def _link(old: Any, new: Any, thresholds: Thresholds) -> str:
    """Returns the function that makes the old probabilities of an output that has no name; empty if none does, or none is needed."""
    if not np.issubdtype(new.dtype, np.floating) or equal_arrays(old, new, thresholds):
        return ""
    wide = new.astype(np.float64)
    powers = np.exp(wide - wide.max(-1, keepdims=True, initial=-np.inf))
    links = {"sigmoid": 1 / (1 + np.exp(-wide)), "softmax": powers / powers.sum(-1, keepdims=True)}
    return next((name for name, value in links.items() if equal_arrays(old, value, thresholds)), "")


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
            yield same[0].removeprefix("key:"), before[same[0]], there[: len(before[same[0]])]
        return
    for key in before.files:
        if key in after.files:
            yield key.removeprefix("key:"), before[key], after[key][: len(before[key])]


def _unequal_noise(old: Trace, new: Trace) -> Iterator[str]:
    for side, trace in (("old", old), ("new", new)):
        names = [name for event in trace.events("random") for name in event["in_step"]]
        names += [name for event in trace.events("dropout") for name in event["loops"]]
        if names:
            yield f"Random operations of the {side} script cannot be made equal: {first_three(list(dict.fromkeys(names)))}."
    if unlike := unlike_turns(_masks(old), _masks(new)):
        yield (
            f"Dropout of a training step cannot be made equal, since only one script draws it for each turn of a loop. Old: {unlike[0]}; "
            f"new: {unlike[1]}. Draw in the new script as the old one does, or compare final metrics: add --seeds 5."
        )
    before, after = _drawn_in_step(old), _drawn_in_step(new)
    if before != after:
        said = (", ".join(map(str, drawn)) or "nothing" for drawn in (before, after))
        yield "Random numbers of a training step cannot be made equal: the old script draws {}; the new script draws {}.".format(
            *said
        )


_Mask = tuple[tuple[int | None, ...], float | None, int]
"""A dropout operation of a step: static shape without the rows, rate, and number of loops around it."""


def _masks(side: Trace) -> Counter[_Mask]:
    """Returns how often a training step draws masks of each shape and rate, in so many loops."""
    found = deque(side.events("dropout"), 1)
    return Counter(
        (tuple(shape or ()), rate, sum(loops[:1])) for shape, rate, *loops in (found.pop()["sites"] if found else ())
    )


def unlike_turns(old: Counter[_Mask], new: Counter[_Mask]) -> tuple[str, str] | None:
    """Returns masks of the two sides that may be of the same tensors: one for all turns of a loop, and one for each turn.

    Args:
        old: Masks of the old side, and how often a step draws each.
        new: Masks of the new side.

    Returns:
        A few words for each side; None if a mask of either side has no counterpart: then dropout is what differs.
    """
    before, after = old - new, new - old
    pairs = [(one, other) for one in before for other in after if _are_turns(one, other, before[one], after[other])]
    if not pairs or {one for one, _ in pairs} != {*before} or {other for _, other in pairs} != {*after}:
        return None
    one, other = pairs[0]
    return _spelled(one, before[one]), _spelled(other, after[other])


def _spelled(mask: _Mask, count: int) -> str:
    shape = ", ".join(map(str, ("batch", *mask[0])))
    return f"{count} of [{shape}]{' in a loop' if mask[2] else ''}"


def _are_turns(one: _Mask, other: _Mask, count: int, others: int) -> bool:
    """Returns True if one mask may be all turns of the other: it has one more dimension, or there is one for each turn, without a loop."""
    if one[1] != other[1]:
        return False
    (turn, turns), (whole, wholes) = sorted(((one, count), (other, others)), key=lambda side: (len(side[0][0]), -side[0][2]))
    if turn[0] == whole[0]:
        return turn[2] > whole[2] and wholes > turns
    fits = [
        size
        for place, size in enumerate(whole[0])
        if len(turn[0]) == len(whole[0]) - 1
        and size != 1
        and all(
            None in pair or pair[0] == pair[1]
            for pair in zip(turn[0], (*whole[0][:place], *whole[0][place + 1 :]), strict=True)
        )
    ]
    return bool(fits) and (turn[2] > whole[2] or (turn[2] == whole[2] and turns / wholes in fits))


def _ambiguous_noise(old: Trace) -> Iterator[str]:
    """Yields a reason if a training step draws numbers whose elements nothing pairs: several of one shape, or one of open sizes."""
    unsure = [drawn for drawn, count in Counter(_drawn_in_step(old)).items() if count > 1 or "None" in drawn]
    if unsure:
        yield f"A training step draws numbers that the new script may draw in another order: {first_three(unsure)}."


def _drawn_in_step(side: Trace) -> list[str]:
    """Returns what a training step draws besides dropout, each with its shape without the rows."""
    found = deque(side.events("draws"), 1)  # the first tracing may build what no step runs
    return sorted(f"{what} {shape}" for shape, what, *_ in found.pop()["sites"]) if found else []


def own_differences(
    old: Trace, new: Trace, again: Trace, predictions: Sequence[PredictionGroup]
) -> tuple[list[VariableDiff], list[PredictionGroup]]:
    """Compares the variables and predictions of two runs of a rewrite.

    Args:
        old: Trace of the old side.
        new: Trace of the first run.
        again: Trace of the second run.
        predictions: Outputs of the rewrite by the old script's names.

    Returns:
        Differences by the names that a comparison with the old script gives them.
    """
    groups, _, _ = _predictions(new, again, Thresholds())
    named = {group.call: group.name for group in predictions}  # an output without a name is the only one of its call
    outputs = [group if group.name else dataclasses.replace(group, name=named.get(group.call, "")) for group in groups]
    return list(_variables(old, new, NewNames(new), again)), outputs


def _variables(old: Trace, new: Trace, names: NewNames, again: Trace | None = None) -> Iterator[VariableDiff]:
    """Yields the differences at the last anchor, before the old script's values were given back, from the old script or a second run."""
    indices = [event["index"] for event in old.events("anchor")]
    for index in reversed(indices):
        after = values_at(new, names, "at", index)
        before = values_at(again, names, "at", index) if again else values_at(new, names, "anchor", index)
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
        where = f"{len(anchors)} steps: " + (
            f"1, 2, 3, each {every}th and the last one of a training" if every > 1 else "each, from the first one on"
        )
        yield f"The old side's values are given to the new side at {where} ({size / 1e6:.3g} MB on disk, with its own)."
    if every != plan.anchor:
        yield f"--anchor {plan.anchor} would need more than --anchor-limit; it became {every}."
    last = max((event["index"] for event in anchors), default=0)
    steps = _length(old)
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
            f"{rel_diff(worst.legacy, worst.modern):.2g}, at step {worst.step}. The verdict comes from the anchors; a loss that is outside between them, and within here with all before it, counts as rounding."
        )


def _other_notes(names: NewNames) -> Iterator[str]:
    slots = [key for key in names.paired.get("unmatched_new", ()) if key in names.slots]
    if slots:
        yield f"The old script has no values for these slots of the new optimizer: {first_three(slots)}."
    warnings = names.paired.get("warnings", ())
    yield from (warning for warning in warnings if warning.startswith("forget_bias"))  # causes say the rest better
