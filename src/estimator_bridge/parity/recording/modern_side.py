"""The modern side of a comparison: the same script, the legacy side's initial values, and its batches in a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.step import checkpoints
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.parity.recording.batches import replay
from estimator_bridge.parity.recording.calls import CallNames, scalar_metrics, write_predictions
from estimator_bridge.parity.recording.model_dirs import install_checkpoint
from estimator_bridge.parity.recording.trace import Trace


class ReplayingEngine:
    """Executes calls on the modern path, from what the legacy side recorded.

    Args:
        trace: where to write.
        legacy: what to start from.
        replaying: use the legacy side's batches; else the script's own input.
        replicas: as for ``ModernEngine``.
    """

    def __init__(self, trace: Trace, legacy: Trace, replaying: bool, replicas: int) -> None:
        self._trace = trace
        self._legacy = legacy
        self._replaying = replaying
        self._names = CallNames()
        self._call = ""
        self._modern = ModernEngine(replicas, self._callbacks, audited=True)
        self.export_saved_model = self._modern.export_saved_model

    def train(
        self,
        estimator: Any,
        input_fn: Callable[..., Any],
        hooks: Any = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Any:
        """``Estimator.train`` from the legacy side's initial values."""
        call = self._call = self._names.next("train")
        self._trace.write("train", call=call, max_steps=max_steps or steps)
        initial = self._legacy.values(call, "initial" if self._replaying else "start")
        if tf.train.latest_checkpoint(estimator.model_dir) is None and tf.io.gfile.exists(f"{initial}.index"):
            step = int(tf.train.load_variable(initial, "global_step"))
            install_checkpoint(initial, Path(estimator.model_dir), f"model.ckpt-{step}")
        self._modern.train(
            estimator, self._input(estimator, input_fn, call, "train"), hooks, steps, max_steps, saving_listeners
        )
        self._trace.write("trained", call=call, checkpoint=tf.train.latest_checkpoint(estimator.model_dir))
        return estimator

    def evaluate(
        self,
        estimator: Any,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Any = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """``Estimator.evaluate``."""
        call = self._names.next("evaluate")
        source = self._input(estimator, input_fn, call, "eval")
        metrics = self._modern.evaluate(estimator, source, steps, hooks, checkpoint_path, name)
        self._trace.write("evaluated", call=call, name=name or "", metrics=scalar_metrics(metrics))
        return metrics

    def predict(
        self,
        estimator: Any,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """``Estimator.predict``."""
        call = self._names.next("predict")
        source = self._input(estimator, input_fn, call, "infer")
        examples = self._modern.predict(estimator, source, predict_keys, hooks, checkpoint_path, yield_single_examples)
        return write_predictions(self._trace, call, examples)

    def _input(self, estimator: Any, input_fn: Callable[..., Any], call: str, mode: str) -> Callable[..., Any]:
        path = self._legacy.batches(call)
        if not self._replaying or not path.exists():
            return input_fn
        return replay(path, lambda: estimator._call_input_fn(input_fn, mode))

    def _callbacks(self) -> Sequence[Callback]:
        return [_Recorder(self._trace, self._call)]


class _Recorder(Callback):
    """Records each step, and the values before and after the first."""

    def __init__(self, trace: Trace, call: str) -> None:
        self._trace = trace
        self._call = call

    def begin(self, transplant: Transplant, step: int) -> None:
        self._entries = checkpoints.entries(transplant)
        self._first = self._next = step + 1
        checkpoints.save(self._entries, self._trace.values(self._call, "initial"))

    def next_stop(self, step: int) -> int | None:
        return self._first if step < self._first else None

    def after(self, progress: Progress) -> bool:
        if self._next == self._first:
            checkpoints.save(self._entries, self._trace.values(self._call, "first"))
        for loss, digest in zip(progress.losses, progress.digests, strict=True):
            self._trace.write("step", call=self._call, step=self._next, loss=float(loss), batch=int(digest))
            self._next += 1
        return False
