"""Evaluations and predictions that differ although the training is equal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import Parting, Stage, at
from estimator_bridge.parity.causes.training.iterations import BY_ROWS
from estimator_bridge.parity.evidence import Evidence, MetricEvidence


@at({Stage.EVALUATION})
def evaluation_dropout(evidence: Evidence, _: Parting) -> Iterator[Cause]:
    """Yields a cause if the new script's evaluation draws dropout masks, and the old one's does not."""
    old, new = evidence.old.evaluation_dropout, evidence.new.evaluation_dropout
    if old is not None and new is not None and bool(old) != bool(new):
        words = ["has dropout" if side else "has none" for side in (old, new)]
        seen = f"The old script's evaluation {words[0]}, the new one's {words[1]}. {_first(evidence)}"
        change = "Call layers with the training argument that call() gets, never with a constant."
        if old:
            change = "To evaluate as the old script does, call these layers with training=True; or mend the old script first."
        yield Cause(CauseName.EVALUATION_DROPOUT, seen, change, _step(evidence))


@at({Stage.EVALUATION})
def evaluation_batches(evidence: Evidence, _: Parting) -> Iterator[Cause]:
    """Yields a cause if an evaluation reads another number of batches, whose metrics are not those of the old script's."""
    for old, new in evidence.evaluation_batches:
        if old and old != new and evidence.metrics:  # batches are not always recorded
            seen = f"The old script evaluates {old} batches, the new one {new}. {_first(evidence)}"
            change = "Evaluate the data of the old script's EvalSpec or evaluate, as often as its steps say."
            yield Cause(CauseName.EVALUATION_DATA, seen, change, _step(evidence))


@at({Stage.EVALUATION, Stage.NONE})
def evaluation_rows(evidence: Evidence, _: Parting) -> Iterator[Cause]:
    """Yields a cause if an evaluation's own rows are others; it ran on those of the old script, so no metric shows it."""
    for seen in evidence.evaluation_rows:
        change = "Evaluate the data of the old script's EvalSpec or evaluate: its files, its part of the rows."
        yield Cause(CauseName.EVALUATION_DATA, f"{seen[0].upper()}{seen[1:]}.", change)


@at({Stage.EVALUATION})
def kept_metrics(evidence: Evidence, _: Parting) -> Iterator[Cause]:
    """Yields a cause if an evaluation goes on with what metrics have counted in the one before."""
    if evidence.kept_metrics and evidence.metrics:
        seen = f"{some(evidence.kept_metrics)}: counted on from the evaluation before. {_first(evidence)}"
        yield Cause(CauseName.KEPT_METRICS, seen, "Call reset_state() of each metric before an evaluation.", _step(evidence))


@at({Stage.EVALUATION})
def evaluation(evidence: Evidence, _: Parting) -> Iterator[Cause]:
    """Yields a cause for metrics that differ."""
    if not evidence.metrics:
        return
    losses = [metric for metric in evidence.metrics if metric.metric == "loss"]
    names = some(sorted({metric.metric for metric in evidence.metrics} - {"loss"}))
    if losses and names:
        kind, seen = CauseName.EVALUATION_MODE, f"The training is equal; loss and {names} of evaluations are not."
        change = "Evaluate with training=False, from the last values, with the old script's labels and weights."
    elif losses:
        kind, seen = CauseName.EVALUATION_LOSS, "The training is equal, the loss of evaluations is not."
        change = "Compare the loss of test_step: layers that are told to train (training=True), its mean over batches or rows, penalties (model.losses), weights."
        if _is_by_constant(evidence, losses[0]):
            seen, change = f"{seen} It would be the old one if each batch had as many rows as the largest.", BY_ROWS
    else:
        kind, seen = CauseName.METRIC_DEFINITION, f"Training and loss of evaluations are equal, but not the metrics {names}."
        change = "Define the metric as the old script's eval_metric_ops: threshold, classes, weights, AUC's num_thresholds."
    yield Cause(kind, f"{seen} {_first(evidence)}{_by_rows(evidence, losses)}", change, _step(evidence))


@at({Stage.EVALUATION})
def predictions(evidence: Evidence, _: Parting) -> Iterator[Cause]:
    """Yields a cause for predictions that differ where all else is equal."""
    if evidence.predictions and not evidence.metrics:
        seen = f"Training and evaluations are equal, the predictions {some(list(evidence.predictions))} are not."
        change = "Compare the outputs: logits or probabilities, training=False, the order of rows."
        yield Cause(CauseName.PREDICTIONS, seen, change)


def _step(evidence: Evidence) -> int | None:
    return min((metric.step for metric in evidence.metrics), default=None)


def _first(evidence: Evidence) -> str:
    spelled = [f"{one.metric} at step {one.step}: old {one.old:.8g}, new {one.new:.8g}" for one in evidence.metrics[:1]]
    return f"{spelled[0]}." if spelled else ""


def _is_by_constant(evidence: Evidence, found: MetricEvidence) -> bool:
    """Returns True if a loss is that of an evaluation whose batches are each divided by the size of the largest."""
    for losses, rows in zip(evidence.old.evaluation_losses, evidence.old.evaluation_rows, strict=False):
        if losses and len(losses) == len(rows) and np.isclose(np.mean(losses), found.old, 1e-5, 0.0):
            return bool(np.isclose(np.mean(np.multiply(losses, rows) / max(rows)), found.new, 1e-4, 0.0))
    return False


def _by_rows(evidence: Evidence, found: list[MetricEvidence]) -> str:
    for losses, rows in zip(evidence.old.evaluation_losses, evidence.old.evaluation_rows, strict=False):
        if found and losses and len(losses) == len(rows) and np.isclose(np.mean(losses), found[0].old, 1e-5, 0.0):
            return f" By rows, the old loss would be {float(np.average(losses, weights=rows)):.8g}."
    return ""
