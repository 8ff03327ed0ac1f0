"""Evaluations that the new script writes itself: a loop over held-out data that updates metrics of Keras."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.calls import scalar_metrics
from estimator_bridge.parity.rewrite import dropout
from estimator_bridge.parity.rewrite.session import Session, recorded

_PREFIXES = ("test_", "val_", "valid_", "validation_", "eval_")


class OwnEvaluation:
    """One pass over held-out data, with the batches of the old script's evaluation at the same step.

    Args:
        session: Session of the new side.
        event: The old script's evaluation.
        spec: Structure of the script's own batches.
        metrics: Metrics of Keras that exist.
        ends: Metric -> its values at the end of the last evaluation that has updated it.
    """

    def __init__(
        self, session: Session, event: dict[str, Any], spec: Any, metrics: Sequence[Any], ends: dict[int, list[bytes]]
    ) -> None:
        self._session, self._event, self._spec, self._ends = session, event, spec, ends
        self._recorded = recorded(session, event["call"])()
        self._before = [(metric, _state(metric)) for metric in metrics]
        self._drawn = dropout.drawn.copy()
        self._batches = 0

    def batches(self, own: Iterator[Any]) -> Iterator[Any]:
        """Yields the recorded batches in the structure of the script's own ones; own ones after the last recorded batch."""
        for batch in self._session.held_out(own, self._spec, self._event["call"], self._recorded):
            self._batches += 1
            yield batch

    def end(self, is_read_whole: bool) -> None:
        """Writes the metrics that the loop has updated; a loop that updates none is no evaluation.

        Args:
            is_read_whole: True if the dataset came to its end; a loop that the script leaves has drawn a batch too many.
        """
        pairs = [(metric, before) for metric, before in self._before if _state(metric) != before]
        if not pairs:
            return
        trace = self._session.trace
        kept = [metric.name for metric, before in pairs if self._ends.get(id(metric)) == before]
        if kept:
            trace.write("kept metrics", names=kept)
        self._ends |= {id(metric): _state(metric) for metric, _ in pairs}
        names = [_old_name(metric.name, self._event["metrics"]) for metric, _ in pairs]
        results = [(name, metric.result()) for name, (metric, _) in zip(names, pairs, strict=True) if names.count(name) == 1]
        trace.write("evaluation", **dropout.drawn_since(self._drawn))
        values = scalar_metrics({name: np.asarray(value) for name, value in results if tf.is_tensor(value)})
        self._session.evaluated(self._event, values, self._batches if is_read_whole else None)
        if is_read_whole:
            self._session.inputs.read_whole(self._event["call"])


def own_evaluation(
    session: Session, spec: Any, first: Any, metrics: Sequence[Any], ends: dict[int, list[bytes]]
) -> OwnEvaluation | None:
    """Returns the evaluation that a loop without training may be; None if the old script has none at this step that fits.

    Args:
        session: Session of the new side.
        spec: Structure of the script's own batches.
        first: The first of them.
        metrics: Metrics of Keras that exist.
        ends: Metric -> its values at the end of the last evaluation that has updated it.
    """
    try:
        event = session.evaluation(spec, [first])
    except BridgeError as error:
        session.note(f"A loop of the new script without training does not get the batches of the old evaluation: {error.what}")
        return None
    return OwnEvaluation(session, event, spec, metrics, ends) if event else None


def _state(metric: Any) -> list[bytes]:
    return [np.asarray(variable).tobytes() for variable in metric.variables]


def _old_name(name: str, known: dict[str, Any]) -> str:
    """Returns a metric's name without what people put before it to tell evaluation from training, if the old script has that one."""
    short = [name.removeprefix(prefix) for prefix in _PREFIXES]
    return name if name in known else next((one for one in short if one in known), name)
