"""Reads the traces of all tasks of both sides, and joins what they say to one result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from estimator_bridge.parity.clusters.plan import ClusterPlan
from estimator_bridge.parity.judge import evaluations_of, metric_findings, pair_metrics
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityFinding, ParityResult, Thresholds, Verdict

_WORST_FIRST: Sequence[Verdict] = ("different", "not comparable", "equal")


def judge_tasks(
    plan: ClusterPlan, judge: Callable[[Trace, Trace], ParityResult], legacy: Sequence[Trace], modern: Sequence[Trace]
) -> ParityResult:
    """Judges each task, and the evaluations of the evaluator.

    Args:
        plan: Cluster of both sides.
        judge: Function that compares the traces of one task.
        legacy, modern: Traces of both sides, in the order of the tasks.

    Returns:
        The chief's result, with the findings of the other tasks. Its verdict is the worst of all.
    """
    (chief, *_), (trace, *_) = legacy, modern
    result = judge(chief, trace)
    findings, verdicts = list(result.findings), [result.verdict]
    notes = [f"Each side ran as a cluster on this machine: {plan}."]
    metrics = list(result.metrics)
    for task, old, new in list(zip(plan.tasks, legacy, modern, strict=True))[1:]:
        if task.trains and any(new.events("step")):
            own = judge(old, new)
            findings += [dataclasses.replace(finding, message=f"{task}: {finding.message}") for finding in own.findings]
            verdicts.append(own.verdict)
            notes.append(f"{task}: {own.verdict}, {len(own.losses)} steps.")
        elif task.trains:
            notes.append(f"{task}: the gradients of its own recorded batches are in the chief's steps.")
        else:
            metrics += pair_metrics(old, new)
            unequal = list(_evaluator(old, new, result.thresholds))
            findings += unequal
            verdicts += ["different"] if unequal and result.verdict == "equal" else []  # else what it evaluated differs
    return dataclasses.replace(
        result,
        verdict=min(verdicts, key=_WORST_FIRST.index),
        metrics=tuple(metrics),
        findings=tuple(sorted(findings, key=lambda finding: float("inf") if finding.step is None else finding.step)),
        notes=(*result.notes, *notes),
    )


def _evaluator(legacy: Trace, modern: Trace, thresholds: Thresholds) -> Iterator[ParityFinding]:
    """Compares the evaluations that both evaluators made. The last of them must be of the same step."""
    last = [max((step for _, step, _ in evaluations_of(trace)), default=None) for trace in (legacy, modern)]
    if last[0] != last[1]:
        yield ParityFinding(
            "metric", f"The last evaluation is that of step {last[0]} on the legacy side, of {last[1]} on the modern."
        )
    yield from metric_findings(tuple(pair_metrics(legacy, modern)), thresholds)
