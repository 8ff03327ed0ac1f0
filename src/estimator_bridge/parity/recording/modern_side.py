"""The modern side of a comparison: the same script, the legacy side's initial values, and its batches in a replay."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.step.transplant import Transplant, entries, save
from estimator_bridge.parity.recording.batches import replay
from estimator_bridge.parity.recording.calls import CallNames, scalar_metrics, write_predictions
from estimator_bridge.parity.recording.model_dirs import install_checkpoint
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.runtime.estimator_calls import Engine, EvaluateCall, ExportCall, PredictCall, TrainCall


class ReplayingEngine(Engine):
    """Executes calls on the modern path, from what the legacy side recorded.

    Args:
        trace: Trace of the modern side.
        legacy: Trace of the legacy side, with its initial values and batches.
        replaying: True to use the legacy side's batches, False to use the script's own input.
        replicas: Number of devices that share each batch.
    """

    def __init__(self, trace: Trace, legacy: Trace, replaying: bool, replicas: int) -> None:
        self._trace = trace
        self._legacy = legacy
        self._replaying = replaying
        self._names = CallNames()
        self._call = ""
        self._modern = ModernEngine(replicas, self._callbacks, audited=True)

    def train(self, estimator: Any, call: TrainCall) -> Any:
        """Executes ``Estimator.train`` from the legacy side's initial values."""
        name = self._call = self._names.next("train")
        self._trace.write("train", call=name, max_steps=call.max_steps or call.steps)
        initial = self._legacy.values(name, "initial" if self._replaying else "start")
        if tf.train.latest_checkpoint(estimator.model_dir) is None and tf.io.gfile.exists(f"{initial}.index"):
            step = int(tf.train.load_variable(initial, "global_step"))
            install_checkpoint(initial, Path(estimator.model_dir), f"model.ckpt-{step}")
        self._modern.train(estimator, self._with_batches(estimator, call, name, "train"))
        self._trace.write("trained", call=name, checkpoint=tf.train.latest_checkpoint(estimator.model_dir))
        return estimator

    def evaluate(self, estimator: Any, call: EvaluateCall) -> dict[str, Any]:
        """Executes ``Estimator.evaluate``."""
        name = self._names.next("evaluate")
        metrics = self._modern.evaluate(estimator, self._with_batches(estimator, call, name, "eval"))
        self._trace.write("evaluated", call=name, name=call.name or "", metrics=scalar_metrics(metrics))
        return metrics

    def predict(self, estimator: Any, call: PredictCall) -> Iterator[Any]:
        """Executes ``Estimator.predict``."""
        name = self._names.next("predict")
        examples = self._modern.predict(estimator, self._with_batches(estimator, call, name, "infer"))
        return write_predictions(self._trace, name, examples)

    def export_saved_model(self, estimator: Any, call: ExportCall) -> bytes:
        """Executes ``Estimator.export_saved_model``."""
        return self._modern.export_saved_model(estimator, call)

    def _with_batches(self, estimator: Any, call: Any, name: str, mode: str) -> Any:
        """Returns the call with the batches that the legacy side recorded for it, if they are to be replayed."""
        path = self._legacy.batches(name)
        if not self._replaying or not path.exists():
            return call
        return dataclasses.replace(call, input_fn=replay(path, lambda: estimator._call_input_fn(call.input_fn, mode)))

    def _callbacks(self) -> Sequence[Callback]:
        return [_Recorder(self._trace, self._call)]


class _Recorder(Callback):
    """Records each step, and the values before and after the first."""

    def __init__(self, trace: Trace, call: str) -> None:
        self._trace = trace
        self._call = call

    def begin(self, transplant: Transplant, step: int) -> None:
        self._entries = entries(transplant)
        self._first = self._next = step + 1
        save(self._entries, self._trace.values(self._call, "initial"))

    def next_stop(self, step: int) -> int | None:
        return self._first if step < self._first else None

    def after(self, progress: Progress) -> bool:
        if self._next == self._first:
            save(self._entries, self._trace.values(self._call, "first"))
        for loss, digest in zip(progress.losses, progress.digests, strict=True):
            self._trace.write("step", call=self._call, step=self._next, loss=float(loss), batch=int(digest))
            self._next += 1
        return False
