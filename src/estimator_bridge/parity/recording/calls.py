"""Helpers of both sides: names of calls, saved predictions, and metrics that are numbers."""

from __future__ import annotations

import atexit
import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from estimator_bridge.parity.recording.trace import Trace

MAX_PREDICTIONS = 1000  # of one call are compared


class CallNames:
    """Names such as ``train-0``, ``train-1``, ``evaluate-0``: equal on both sides as long as they make the same calls."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def next(self, verb: str) -> str:
        """Returns the name of the next call of a verb."""
        name = f"{verb}-{self._seen[verb]}"
        self._seen[verb] += 1
        return name


def scalar_metrics(metrics: dict[str, Any]) -> dict[str, float]:
    """Returns the metrics that are numbers."""
    scalars = {name: value for name, value in metrics.items() if np.ndim(value) == 0}
    return {name: float(value) for name, value in scalars.items() if not isinstance(value, bytes | str)}


def write_predictions(trace: Trace, call: str, examples: Iterator[Any]) -> Iterator[Any]:
    """Passes predictions on; the first of them are saved when they end, when the script wants no more, or when it ends itself."""
    kept: dict[str, list[Any]] = defaultdict(list)
    with contextlib.ExitStack() as end:
        end.callback(_save_predictions, trace, call, kept)
        end.callback(atexit.unregister, end.close)
        atexit.register(end.close)  # Python may never close a generator that the script leaves open
        for count, example in enumerate(examples, 1):
            if count <= MAX_PREDICTIONS:
                for key, value in example.items() if isinstance(example, dict) else [("", example)]:
                    kept[key].append(np.asarray(value))
            yield example


def _save_predictions(trace: Trace, call: str, kept: dict[str, list[Any]]) -> None:
    np.savez(trace.predictions(call), **{f"key:{key}": _stacked(values) for key, values in kept.items()})
    trace.write("predicted", call=call)


def _stacked(values: list[Any]) -> Any:
    ragged = len({value.shape for value in values}) > 1
    stacked = np.concatenate([value.ravel() for value in values]) if ragged else np.stack(values)
    return stacked.astype("S") if stacked.dtype == object else stacked
