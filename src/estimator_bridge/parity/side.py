"""The process of one side: ``python -m estimator_bridge.parity.side JSON`` runs the script and writes its trace."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.runtime.estimator_calls import Engine
from estimator_bridge.runtime.log_output import log_to_stderr
from estimator_bridge.script.run import Script, run_as_main, run_legacy, run_modern
from estimator_bridge.script.tracebacks import run_as_python_does


@dataclasses.dataclass(frozen=True)
class Order:
    """The order for a side: the script, the folder of its trace, and how to run."""

    side: str
    folder: str
    script: Script
    replaying: bool
    replicas: int
    plan: RewritePlan | None = None

    def trace(self, side: str) -> Trace:
        """Returns a side's trace."""
        return Trace(Path(self.folder) / side)


def main(text: str) -> int:
    """Runs one side.

    Args:
        text: ``Order`` as JSON.

    Returns:
        The script's exit code; 2 after a refusal, which is in the trace.
    """
    fields = json.loads(text)
    order = Order(**{**fields, "script": Script(**fields["script"]), "plan": read_plan(fields["plan"])})
    trace = order.trace(order.side)
    trace.make()
    _end_with_parent()
    with log_to_stderr():
        try:
            if order.side in {"new", "free"}:
                return _run_new(order, trace)
            run_script = run_legacy if order.side == "legacy" else run_modern
            return run_as_python_does(lambda: run_script(order.script, lambda: _make_engine(order, trace)))
        except BridgeError as error:
            trace.write("failed", message=str(error))
            return 2


def read_plan(fields: dict[str, Any] | None) -> RewritePlan | None:
    """Returns a plan that was JSON."""
    if fields is None:
        return None
    given = tuple((old, new) for old, new in fields["given"])
    return RewritePlan(**{**fields, "script": Script(**fields["script"]), "given": given})


def _run_new(order: Order, trace: Trace) -> int:
    from estimator_bridge.parity.rewrite.new_side import prepare

    assert order.plan
    check = prepare(trace, order.trace("legacy"), order.plan)
    script = order.plan.script
    code = run_as_python_does(lambda: run_as_main(script))
    check()
    return code


def _make_engine(order: Order, trace: Trace) -> Engine:
    """Patches TensorFlow once tf.estimator is there, before the script runs, and returns the engine of the side."""
    from estimator_bridge.parity.recording import model_dirs, randomness

    randomness.equalise()
    model_dirs.redirect(trace.folder, Path(order.folder) / "start")
    if order.plan is not None:
        from estimator_bridge.parity.rewrite.old_side import ReferenceEngine

        return ReferenceEngine(trace, order.plan)
    if order.side == "legacy":
        from estimator_bridge.parity.recording.legacy_side import RecordingEngine

        return RecordingEngine(trace, order.replaying)
    from estimator_bridge.parity.recording.modern_side import ReplayingEngine

    return ReplayingEngine(trace, order.trace("legacy"), order.replaying, order.replicas)


def _end_with_parent() -> None:
    """Ends this process as soon as its parent is gone, which holds the other end of stdin."""
    pipe = os.dup(0)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)

    def wait() -> None:
        os.read(pipe, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
