"""The modern side of a comparison: the same script, the recorded side's initial values, and its batches in a replay."""

import functools
from collections.abc import Callable
from typing import Any

from estimator_bridge.modern.callbacks.base import Callback, Progress
from estimator_bridge.modern.callbacks.graph_session import GraphSession
from estimator_bridge.modern.engine import ModernEngine
from estimator_bridge.modern.parallel.plans.plan import NOT_PARALLEL, ParallelPlan
from estimator_bridge.modern.step.transplant import Transplant
from estimator_bridge.parity.recording.calls import TracedEngine
from estimator_bridge.parity.recording.replaying import install_start, with_recorded_batches
from estimator_bridge.parity.recording.step_limit import StepLimit
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.runtime.estimator_calls import TrainCall
from estimator_bridge.runtime.patching import wrap


class ReplayingEngine(TracedEngine):
    """Executes calls on the modern path, from what another side recorded.

    Args:
        trace: Trace of the modern side.
        limit: Number of training steps after which the script ends.
        recorded: Trace of the recorded side, with its initial values and batches.
        replaying: True to use the recorded batches, False to use the script's own input.
        replicas: Number of devices that share each batch.
        start: Trace with the initial values; ``recorded`` by default, the chief's in a cluster.
        audited: True to look at the batches of every step; parameter servers do not allow that.
        moved: Function of a path that returns the path in the side's folders.
        parallel: Mesh and micro-batches.
    """

    def __init__(
        self,
        trace: Trace,
        limit: StepLimit,
        recorded: Trace,
        replaying: bool,
        replicas: int,
        moved: Callable[[str], str] = str,
        start: Trace | None = None,
        audited: bool = True,
        parallel: ParallelPlan = NOT_PARALLEL,
    ) -> None:
        engine = ModernEngine(replicas, lambda: [_Recorder(trace, self._call, limit, audited)], audited, plan=parallel)
        super().__init__(engine, trace, limit, moved)
        wrap(GraphSession, read_input=self._note_own_batches)
        self._recorded = recorded
        self._start = start or recorded
        self._replaying = replaying
        self._call = ""

    def prepare(self, estimator: Any, call: Any, name: str) -> Any:
        """Returns the call with the batches that were recorded for it; a training gets its initial values, too."""
        if isinstance(call, TrainCall):
            self._call = name
            install_start(self._start, estimator, name, "initial" if self._replaying else "start")
        return with_recorded_batches(self._recorded, estimator, call, name) if self._replaying else call

    def _note_own_batches(self, original: Callable[..., Any], session: Any, part: Any, feeds: Any) -> Any:
        """Notes that a session hook reads a batch of its own, which no recording has."""
        if part.batch and self._replaying:
            self._trace.write("unrecorded")
        return original(session, part, feeds)


class _Recorder(Callback):
    """Records each step, and the values before and after the first."""

    def __init__(self, trace: Trace, call: str, limit: StepLimit, audited: bool) -> None:
        self._trace = trace
        self._audited = audited
        self._call = call
        self._limit = limit

    def begin(self, transplant: Transplant, step: int) -> None:
        self._save = functools.partial(transplant.save, transplant.saved())
        self._first = self._next = step + 1
        self._save(self._trace.values(self._call, "initial"))

    def next_stop(self, step: int) -> int | None:
        if step < self._first:
            return self._first
        return None if self._limit.left is None else step + self._limit.left

    def after(self, progress: Progress) -> bool:
        if self._next == self._first:
            self._save(self._trace.values(self._call, "first"))
        for loss, digest in zip(progress.losses, progress.digests, strict=True):
            batch = int(digest) if self._audited else None
            self._trace.write("step", call=self._call, step=self._next, loss=float(loss), batch=batch)
            self._next += 1
        return self._limit.take(len(progress.losses))
