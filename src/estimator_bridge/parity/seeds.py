"""Comparisons by final metrics over several seeds, for trainings that cannot be compared step by step."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.clusters.plan import ClusterPlan
from estimator_bridge.parity.equivalence import CONFIDENCE, judge_metric
from estimator_bridge.parity.recording.randomness import SEED
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import MetricEquivalence, ParityFinding, ParityResult, Thresholds, Verdict
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import Recordings, Watch, environment, run_side
from estimator_bridge.parity.side import Order
from estimator_bridge.script.run import Script

FEWEST = 3
MARGIN = 0.01
Metrics = Mapping[tuple[str, str], float]  # (evaluation, metric) -> its last value


def compare_seeds(
    script: Script,
    plan: RewritePlan | None = None,
    *,
    seeds: int,
    margin: float = MARGIN,
    replicas: int = 1,
    cluster: ClusterPlan | None = None,
    recordings: Recordings | None = None,
    watch: Watch = lambda side, event: None,
) -> ParityResult:
    """Trains both sides freely with several seeds, and tests whether their final metrics are equivalent.

    Args:
        script: Unmodified TensorFlow 1 script.
        plan: Its rewrite in Keras; None to compare both paths of the script.
        seeds: Number of seeds, 3 or more.
        margin: Largest difference of the means that counts as equivalent, as a share of the legacy side's mean.
        replicas: Number of replicas of the modern side.
        cluster: Cluster as which each side of the script runs, also under asynchronous updates; a rewrite runs in one process.
        recordings: Folder in which both sides record; by default a temporary one.
        watch: Function of (side, event) that shows progress.

    Returns:
        The result; its verdict is "equivalent", "not equivalent" or "not decided".

    Raises:
        BridgeError: A side cannot run its script to its end, or evaluates nothing.
    """
    for each in (script, *([plan.script] if plan else [])):
        each.check_syntax()
    sides = ("legacy", "new" if plan else "modern")
    runs: dict[str, list[Metrics]] = {side: [] for side in sides}
    seconds = dict.fromkeys(sides, 0.0)
    with (recordings or Recordings()).folder() as folder:
        _say(f"--seeds {seeds} trains each side {seeds} times")
        for number in range(1, seeds + 1):
            for side in sides:
                place = Path(folder) / f"seed-{number}"
                place.mkdir(exist_ok=True)
                order = Order(side, str(place), script, False, replicas, seed=SEED + number, cluster=cluster)
                if side == "new":
                    order = dataclasses.replace(order, plan=plan, cluster=None)
                seconds[side] += run_side(order, watch)
                runs[side].append(final_metrics(_evaluations(order.traces(side)), side, is_last=plan is not None))
            if number == 1:
                _say(f"--seeds trains with {seeds - 1} more seeds, which may take {sum(seconds.values()) * (seeds - 1):.0f} s")
    result = judge_seeds(
        *runs.values(), margin=margin, command=(str(script), *script.args), new_side="new" if plan else "modern"
    )
    where = [f"{'The old script' if plan else 'Each side'} ran as a cluster on this machine: {cluster}."] if cluster else []
    return dataclasses.replace(
        result,
        seconds=seconds,
        environment=environment() | {"seed": f"{SEED + 1} to {SEED + seeds}"},
        notes=(*result.notes, *where),
    )


def _evaluations(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """Returns the evaluations of a run in their order; those of several tasks in the order of their global steps."""
    events = [event for trace in traces for event in trace.events("evaluated")]
    return sorted(events, key=lambda event: event["metrics"]["global_step"]) if len(traces) > 1 else events


def final_metrics(evaluations: Iterable[dict[str, Any]], side: str, *, is_last: bool) -> Metrics:
    """Returns the last value of each metric.

    Args:
        evaluations: Events of a run's evaluations.
        side: Name of the side, for the message.
        is_last: True for the metrics of the last evaluation alone, whatever its name; a rewrite's evaluations have no names.

    Raises:
        BridgeError: The script evaluated nothing.
    """
    found: dict[tuple[str, str], float] = {}
    for event in evaluations:
        if is_last:
            found.clear()
        found |= {(event["name"] * (not is_last), metric): value for metric, value in event["metrics"].items()}
    values = {key: value for key, value in found.items() if key[1] != "global_step"}
    if not values:
        raise BridgeError(
            f"The {side} side evaluated nothing, so there are no final metrics.",
            expected="evaluate or train_and_evaluate of an Estimator",
            fix="Evaluate at the end of the script, or compare it without --seeds.",
        )
    return values


def judge_seeds(
    legacy: Sequence[Metrics],
    modern: Sequence[Metrics],
    *,
    margin: float,
    command: tuple[str, ...],
    new_side: str = "modern",
) -> ParityResult:
    """Judges the final metrics of all runs.

    Args:
        legacy: Metrics of the legacy side, one for each seed.
        modern: Metrics of the other side for the same seeds.
        margin: Largest difference of the means that counts as equivalent, as a share of the legacy side's mean.
        command: Script and its arguments, for the report.
        new_side: Name of the other side, "modern" or "new".
    """
    common = [key for key in legacy[0] if all(key in run for run in (*legacy, *modern))]
    alone = dict.fromkeys(key for run in (*legacy, *modern) for key in run if key not in common)
    tested = tuple(
        judge_metric(*key, [run[key] for run in legacy], [run[key] for run in modern], margin, len(common)) for key in common
    )
    findings = [
        *_constant("legacy", legacy),
        *_constant(new_side, modern),
        *(
            ParityFinding("metric", f"{_spell(key)} is not given by every run of both sides.")
            for key in alone
            if new_side == "modern"
        ),
        *_undecided(tested),
    ]
    outcomes = {test.outcome for test in tested}
    verdict: Verdict = "not decided" if findings or outcomes != {"equivalent"} else "equivalent"
    if "not equivalent" in outcomes and not any(_constant("", runs) for runs in (legacy, modern)):
        verdict = "not equivalent"
    if not tested:
        findings.append(ParityFinding("metric", "No metric is given by both sides."))
    test = f"Two one-sided t-tests of the differences of each seed, with {CONFIDENCE:.0%} confidence"
    notes = [
        f"Each side trained freely with {len(legacy)} seeds: its own initial values, batches and random numbers.",
        f"{test}; the margin is {margin:.3g} times the mean of the {'old' if new_side == 'new' else 'legacy'} side.",
        *([f"Only one side gives {', '.join(map(_spell, alone))}."] if alone and new_side == "new" else []),
    ]
    return ParityResult(
        command,
        "seeds",
        verdict,
        Thresholds(),
        findings=tuple(findings),
        notes=tuple(notes),
        new_side="new" if new_side == "new" else "modern",
        equivalence=tested,
    )


def _constant(side: str, runs: Sequence[Metrics]) -> list[ParityFinding]:
    """Returns a finding if all runs of a side gave the same bits."""
    if any(run != runs[0] for run in runs):
        return []
    message = (
        f"All {len(runs)} runs of the {side} side give the same metrics to the last bit, so they are one run. The script sets its own "
        "seeds (tf.set_random_seed, RunConfig(tf_random_seed=...), np.random.seed, random.seed), or draws nothing at random. Leave its "
        "seeds out, or give them by a flag."
    )
    return [ParityFinding("calls", message)]


def _undecided(tested: Sequence[MetricEquivalence]) -> Iterator[ParityFinding]:
    advice = {"not decided": " More seeds narrow the interval.", "not equivalent": ""}
    for test in tested:
        if test.outcome != "equivalent":
            interval = f"{test.difference:.3g}, from {test.low:.3g} to {test.high:.3g}"
            message = f"{_spell((test.evaluation, test.metric))}: {test.outcome}; mean difference {interval}, margin {test.margin:.3g}."
            yield ParityFinding("metric", message + advice[test.outcome])


def _spell(key: tuple[str, str]) -> str:
    evaluation, metric = key
    return f"{metric} of evaluation {evaluation or 'eval'!r}"


def _say(message: str) -> None:
    sys.stderr.write(f"estimator-bridge: {message}.\n")
