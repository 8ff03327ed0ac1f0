"""The process of one side: ``python -m estimator_bridge.parity.side JSON`` runs the script and writes its trace."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import gc
import io
import json
import os
import re
import shutil
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.parallel.plans.plan import NOT_PARALLEL, ParallelPlan, of_dict
from estimator_bridge.parity.clusters.plan import ClusterPlan, task_of_this_process
from estimator_bridge.parity.recording.step_limit import StepLimit
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.runtime.estimator_calls import Engine, EstimatorEngine
from estimator_bridge.runtime.log_output import log_to_stderr
from estimator_bridge.runtime.patching import wrap
from estimator_bridge.runtime.user_code import is_users
from estimator_bridge.script.run import Script, run_as_main, run_legacy, run_modern
from estimator_bridge.script.tracebacks import run_as_python_does

ALONE = "alone"  # a run of the new script by itself, as far as it needs to show that it can train
GO = b"g"
"""What a side reads on stdin when its script may run: until then it has only imported TensorFlow."""
_may_run = threading.Event()
_MESSAGE_LINES = 4  # of an error; TensorFlow's go on with where each operation was made
_WHERE_DEFINED = re.compile(
    r"Graph execution error:\s*(?:Detected at node .*\n(?:(?:.*\n)*?Node: .*\n|(?: *(?:File .*|<stack traces unavailable>)?\n)*))+"
)
"""What TensorFlow puts before the message of an operation that fails in a graph."""
_IN_USER_CODE = re.compile(r"^\S+: in user code:\n")
_FRAME = re.compile(r'^ *File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>\S+).*\n(?P<code>.*)\n', re.MULTILINE)
"""What AutoGraph puts before the message of an error in a function that it has rewritten, whose own frames name no file of the script."""


@dataclasses.dataclass(frozen=True)
class Order:
    """The order for a side: the script, the folder of its trace, and how to run.

    Attributes:
        steps: Number of training steps after which the side ends its script; None for no limit.
        recorded: Name of the side whose recording the other ones get.
        python: Interpreter of the reference, which runs nothing of this package; empty for the other sides.
        seed: Seed of a side that trains freely; None for a side that records or is given a recording.
        cluster: Cluster as which the side runs; None for one process.
        task: Task of the cluster that this process is, as in names of files; empty outside of it.
        parallel: Mesh and micro-batches of the modern side.
    """

    side: str
    folder: str
    script: Script
    replaying: bool
    replicas: int
    plan: RewritePlan | None = None
    steps: int | None = None
    seed: int | None = None
    recorded: str = "legacy"
    python: str = ""
    cluster: ClusterPlan | None = None
    task: str = ""
    parallel: ParallelPlan = NOT_PARALLEL

    def trace(self, side: str) -> Trace:
        """Returns a side's trace, or that of this task on the side."""
        return Trace(Path(self.folder) / side / self.task)

    def of_task(self, task: TaskId) -> Order:
        """Returns the order for a task of the cluster."""
        return dataclasses.replace(self, task=task.file_stem)

    def traces(self, side: str) -> list[Trace]:
        """Returns the traces of a side: one for each task of a cluster, the task that leads first."""
        return [self.of_task(task).trace(side) for task in self.cluster.tasks] if self.cluster else [self.trace(side)]


def main(text: str) -> int:
    """Runs one side.

    Args:
        text: ``Order`` as JSON.

    Returns:
        The script's exit code; 2 after a refusal, which is in the trace.
    """
    order = _read_order(text)
    if order.cluster and not Rendezvous.of_this_process():
        return _launch(order, order.cluster, text)
    if order.cluster:
        order = order.of_task(task_of_this_process())  # its guard ends it with its launcher
        shutil.rmtree(order.trace(order.side).folder, ignore_errors=True)  # of a start with ports that were taken
    else:
        _end_with_parent(lambda: os._exit(1))
        if order.side != order.recorded:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the side that is recorded meanwhile
    trace = order.trace(order.side)
    trace.make()
    sys.excepthook = functools.partial(_record_error, trace, sys.excepthook)
    with log_to_stderr():
        try:
            atexit.register(_record_imports, trace)
            if order.plan is not None and order.side != "legacy":
                return _run_new(order, trace)
            run_script = run_legacy if order.side == "legacy" else run_modern
            return run_as_python_does(lambda: run_script(order.script, lambda: _make_engine(order, trace)))
        except BridgeError as error:
            trace.write("failed", message=str(error), address=error.address)
            sys.stderr.write(f"{error}\n")  # for the log, in which a launcher looks for a port that was taken
            return 2


def _read_order(text: str) -> Order:
    fields = json.loads(text)
    cluster = fields["cluster"] and ClusterPlan(**fields["cluster"])
    plan = read_plan(fields["plan"])
    return Order(
        **{
            **fields,
            "script": Script(**fields["script"]),
            "plan": plan,
            "cluster": cluster,
            "parallel": of_dict(fields["parallel"]),
        }
    )


def _launch(order: Order, cluster: ClusterPlan, text: str) -> int:
    """Runs a side as a cluster, each task of which is this module again."""
    from estimator_bridge.parity.clusters.launched import run_tasks
    from estimator_bridge.parity.recording.folders.model_dirs import remove_created

    trace = order.trace(order.side)
    trace.make()
    _end_with_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))  # the launcher ends its tasks and removes its folder
    try:
        failure = run_tasks(
            cluster,
            ["-m", "estimator_bridge.parity.side", text],
            trace.folder / "logs",
            lambda task: order.of_task(task).trace(order.side),
        )
    except BridgeError as error:
        failure = error
    remove_created(trace.folder)
    if failure:
        trace.write("failed", message=str(failure), address=failure.address)
    return 2 if failure else 0


def read_plan(fields: dict[str, Any] | None) -> RewritePlan | None:
    """Returns a plan that was JSON."""
    if fields is None:
        return None
    given = tuple((old, new) for old, new in fields["given"])
    return RewritePlan(**{**fields, "script": Script(**fields["script"]), "given": given})


def _run_new(order: Order, trace: Trace) -> int:
    import tf_keras  # noqa: F401 -- it takes seconds, in which the side before this one may still run

    from estimator_bridge.parity.recording.free_side import prepare_keras
    from estimator_bridge.parity.rewrite.intercept import alone
    from estimator_bridge.parity.rewrite.new_side import prepare

    _may_run.wait()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert order.plan
    script = order.plan.script
    if order.side == ALONE:
        is_done = alone.prepare(trace)
        code = run_as_python_does(lambda: run_as_main(script))
        return 0 if is_done() else code
    check = prepare(trace, order.trace("legacy"), order.plan) if order.seed is None else prepare_keras(trace, order.seed)
    code = run_as_python_does(lambda: run_as_main(script))
    if not code:  # else the script's own error says more
        check()
    return code


def _make_engine(order: Order, trace: Trace) -> Engine:
    """Patches TensorFlow once tf.estimator is there, before the script runs, and returns the engine of the side."""
    from estimator_bridge.parity.recording import randomness
    from estimator_bridge.parity.recording.folders import model_dirs
    from estimator_bridge.parity.recording.folders.python_listings import note_listings

    if not order.cluster:
        _may_run.wait()
        signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = randomness.SEED if order.seed is None else order.seed
    randomness.equalise(order.cluster.seed_of(task_of_this_process(), seed) if order.cluster else seed)
    side = Path(order.folder) / order.side
    moved = model_dirs.redirect(side, Path(order.folder) / "start", is_shared=order.cluster is not None)
    note_listings(moved, lambda message: trace.write("note", message=message))
    recorded = [] if order.side == order.recorded else order.traces(order.recorded)[0].events("limited")
    limit = StepLimit(next((event["steps"] for event in recorded), order.steps))
    if order.side != "legacy":
        from estimator_bridge.modern.training import train as training

        wrap(training, common_seed=lambda *_: None)  # workers have one seed already, and both sides the same
    if order.seed is not None:
        return _free_engine(order, trace, limit, moved)
    signal.signal(signal.SIGINT, lambda *_: limit.reach())  # Ctrl-C ends the recording, not the comparison
    if order.plan is not None:
        from estimator_bridge.parity.rewrite.old_side import ReferenceEngine

        return ReferenceEngine(trace, limit, order.plan, moved)
    if order.side == "legacy":
        from estimator_bridge.parity.recording.legacy_side import FollowingEngine, RecordingEngine

        if order.recorded != "legacy":
            return FollowingEngine(trace, limit, order.trace(order.recorded), moved)
        return RecordingEngine(trace, limit, order.replaying, moved)
    from estimator_bridge.parity.recording.modern_side import ReplayingEngine

    start = order.traces(order.recorded)[0]
    audited = not (order.cluster and order.cluster.counts.get("ps"))
    return ReplayingEngine(
        trace,
        limit,
        order.trace(order.recorded),
        order.replaying,
        order.replicas,
        moved,
        start=start,
        audited=audited,
        parallel=order.parallel,
    )


def _free_engine(order: Order, trace: Trace, limit: StepLimit, moved: Callable[[str], str]) -> Engine:
    from estimator_bridge.modern.engine import ModernEngine
    from estimator_bridge.parity.recording.free_side import FreeEngine

    engine = EstimatorEngine() if order.side == "legacy" else ModernEngine(order.replicas)
    return FreeEngine(engine, trace, limit, moved)


def _record_error(
    trace: Trace,
    show: Callable[..., object],
    kind: type[BaseException],
    error: BaseException,
    frames: types.TracebackType | None,
) -> None:
    """Writes to the trace what ends the script, with the script's own lines that led there, and shows the error as usual."""
    message = message_lines(error)
    own = [
        f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(frames)
        if is_users(frame.filename)
    ]
    trace.write("error", lines=[*own, *message])
    show(kind, error, frames)


def message_lines(error: BaseException) -> list[str]:
    """Returns the first lines of an error as Python shows it, without where TensorFlow's operations were defined.

    Args:
        error: Error.

    Example:
        >>> message_lines(ValueError("no rows"))
        ['ValueError: no rows']
    """
    text = _WHERE_DEFINED.sub("", "".join(traceback.format_exception_only(error))).partition("Original stack trace for")[0]
    if _IN_USER_CODE.match(text):
        text = _FRAME.sub(_own_frame, _IN_USER_CODE.sub("", text))
    return [line for line in text.splitlines() if line.strip()][:_MESSAGE_LINES]


def _own_frame(frame: re.Match[str]) -> str:
    """Returns a frame of the script's own in one line, and nothing for any other."""
    return f"{frame['file']}:{frame['line']} in {frame['name']}: {frame['code'].strip()}\n" if is_users(frame["file"]) else ""


def _record_imports(trace: Trace) -> None:
    """Writes which of the user's own files the script has imported, for a comparison that resumes, and the devices, for the report."""
    named = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    own = {str(Path(name).resolve()) for name in named if isinstance(name, str) and is_users(name)}
    trace.write("imported", files=sorted(own), devices=_devices())


def _devices() -> list[str]:
    """Returns the names of the devices that TensorFlow sees in this process; none where it is not loaded."""
    config = getattr(sys.modules.get("tensorflow"), "config", None)
    if config is None:
        return []
    models = {device.name: config.experimental.get_device_details(device) for device in config.list_physical_devices()}
    return [f"{name.split(':', 1)[-1]} {details.get('device_name', '')}".strip() for name, details in models.items()]


def _end_with_parent(end: Callable[[], object]) -> None:
    """Calls a function that ends this process as soon as its parent is gone, which holds the other end of stdin."""
    pipe = os.dup(0)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)

    def wait() -> None:
        while os.read(pipe, 1):
            _may_run.set()
        end()

    threading.Thread(target=wait, daemon=True).start()


def _leave(code: int) -> None:
    """Ends this process without Python's last part, in which a thread of TensorFlow that still calls Python ends it by abort()."""
    threading._shutdown()  # type: ignore[attr-defined] # what Python itself calls
    atexit._run_exitfuncs()
    open_files = [one for one in gc.get_objects() if isinstance(one, (io.TextIOWrapper, io.BufferedWriter))]
    for stream in (sys.stdout, sys.stderr, *open_files):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _leave(main(sys.argv[1]))
