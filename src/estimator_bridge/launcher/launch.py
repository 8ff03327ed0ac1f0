"""A launch from the layout to the end: starts the processes, and tries again if a port was taken meanwhile."""

import contextlib
import dataclasses
import functools
import os
import signal
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from estimator_bridge.cluster.preemption import handle_signals
from estimator_bridge.cluster.rendezvous import VARIABLE, Flag, Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.audit.audit import AuditRequest
from estimator_bridge.launcher.display import open_display
from estimator_bridge.launcher.layout import Layout, local_layout
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.machines import Machines
from estimator_bridge.launcher.monitors.resizing import ElasticSize, Regrouping, Resizing
from estimator_bridge.launcher.outcome import SIGNALLED, NoRestart, Outcome, Timeouts
from estimator_bridge.launcher.processes.spawner import Forker, Spawner
from estimator_bridge.launcher.processes.task import Sink, Task
from estimator_bridge.launcher.supervisor import Supervisor

_ATTEMPTS = 3
_NO_RENDEZVOUS = "The rendezvous of the launchers cannot be used."
_UNBUFFERED = {"PYTHONUNBUFFERED": "1"}


@dataclasses.dataclass(frozen=True)
class LaunchResult:
    """A cluster that has ended.

    Attributes:
        outcome: End of the cluster.
        tasks: All tasks with their last states.
    """

    outcome: Outcome
    tasks: Sequence[Task]

    def to_json(self) -> dict[str, Any]:
        """Returns the object that ``--format json`` prints."""
        problem = self.outcome.problem
        return {
            "exit_code": self.outcome.code,
            "problem": None if problem is None else str(problem),
            "tasks": [
                {
                    "task": str(task.name),
                    "state": task.state.value,
                    "exit_code": task.exit_code,
                    "global_step": task.step,
                    "restarts": task.restarts,
                    "log": str(task.log),
                }
                for task in sorted(self.tasks, key=lambda task: task.name)
            ],
        }


def launch(
    layouts: Iterable[Layout],
    arguments: Sequence[str],
    log_dir: Path,
    timeouts: Timeouts,
    stream: TextIO,
    preload: str | None = None,
    audit: AuditRequest | None = None,
    shared_folder: Path | None = None,
    spawner: Spawner | None = None,
    size: ElasticSize | Machines | None = None,
) -> LaunchResult:
    """Runs the tasks of a cluster that belong to this machine until they end.

    Args:
        layouts: Layouts to try in turn. The next one is tried if a port was taken before its server started; no task trains before
            every server is there, so another try costs only time.
        arguments: Arguments of Python for every task: "-m", a module's name, and its own. TF_CONFIG tells each task its place.
        log_dir: Folder for the tasks' output, one file each; it is made if necessary, and files are appended to.
        timeouts: Time limits.
        stream: Stream for the tasks' output, each line with its task, and for the table.
        preload: Module that takes every task seconds to import. It is imported once and each task forked from there, if there are
            several tasks and the system allows it.
        audit: Request to look for silent faults of the training.
        shared_folder: Rendezvous folder that the launchers of a cluster on several machines share.
        spawner: Spawner of tasks that do not run on this machine.
        size: Numbers of workers with which a training on this machine can go on when one is lost; SIGUSR1 asks for more of them. For a
            training on several machines, those that can take part.

    Returns:
        The end of the cluster; no process of it is left.

    Raises:
        BridgeError: The cluster cannot be started.
    """
    _make_folder(log_dir, "The tasks' logs cannot be written.", "--log-dir")
    asked: list[int] = []
    more = handle_signals(asked.append, signal.SIGUSR1) if isinstance(size, ElasticSize) else contextlib.nullcontext()
    outcome, tasks = Outcome(0), list[Task]()
    in_vain = 0  # starts in a row without a step
    with more, open_display(stream) as (say, show):
        waiting = _of_round(size, say) if isinstance(size, Machines) else iter(layouts)
        while (layout := next(waiting, None)) is not None:
            with _open_rendezvous(size.folder if isinstance(size, Machines) else shared_folder) as rendezvous:
                _begin(rendezvous, layout)
                if layout.is_local:
                    rendezvous.set_flag(Flag.LOOPBACK)
                if layout.is_whole or shared_folder is not None:
                    rendezvous.set_flag(Flag.SHARED)
                running = None if audit is None else audit.begin(layout, rendezvous)
                tasks = _make_tasks(layout, arguments, rendezvous, log_dir, say)
                with spawner or _make_spawner(preload if len(tasks) > 1 else None, log_dir) as starter:
                    cluster = LocalCluster(layout, tasks, starter, rendezvous, timeouts, say)
                    outcome = Supervisor(cluster, show, running, _resizing(cluster, size, asked)).run()
                if running and outcome.code == 0 and outcome.workers is None:
                    say("launch", running.describe())
            in_vain = 0 if any(task.step for task in tasks) else in_vain + 1
            if following := _following(size, outcome, say, in_vain):
                waiting = following
                continue
            if outcome.no_restart is not NoRestart.PORT_TAKEN:
                break
            say("launch", "a port was taken before its server started")
    return LaunchResult(_ended(size, outcome) if isinstance(size, Machines) else outcome, tasks)


def _ended(machines: Machines, outcome: Outcome) -> Outcome:
    """Tells machines that stand by of the end; returns it, or that of the others if this machine stood by."""
    if not machines.members:
        code = machines.exit_code
        problem = BridgeError("The training has failed on the other machines.", fix="Read what their launchers say.")
        return Outcome(code, problem if code else None)
    if outcome.problem is not None or not outcome.code:  # else this machine leaves, and the others go on
        machines.end(outcome.code)
    return outcome


def _following(size: ElasticSize | Machines | None, outcome: Outcome, say: Sink, in_vain: int) -> Iterator[Layout] | None:
    """Returns the layouts with which a training goes on after a change of its workers; None if it does not."""
    if isinstance(size, ElasticSize) and outcome.workers:
        return local_layouts(size.counts(outcome.workers))
    if isinstance(size, Machines) and (outcome.workers or (outcome.lost and in_vain < _ATTEMPTS)):
        if outcome.problem is not None:
            say("launch", f"{outcome.problem.what} The training goes on with the machines that are there")
        return _of_round(size, say, outcome.lost)
    return None


def _resizing(cluster: LocalCluster, size: ElasticSize | Machines | None, asked: list[int]) -> Resizing | Regrouping | None:
    if isinstance(size, Machines):
        return Regrouping(cluster, size)
    return Resizing(cluster, size, asked) if size else None


def _of_round(machines: Machines, say: Sink, lost: Collection[TaskId] = ()) -> Iterator[Layout]:
    """Yields the layout of the next round, as often as its port may be taken; nothing if the training has ended."""
    _make_folder(machines.folder.parent, _NO_RENDEZVOUS, "--rendezvous")
    with handle_signals(lambda number: sys.exit(SIGNALLED + number), signal.SIGTERM):
        layout = machines.join(functools.partial(say, "launch"), lost)
    return iter([layout] * _ATTEMPTS if layout else [])


def local_layouts(counts: Mapping[str, int]) -> Iterator[Layout]:
    """Yields layouts on this machine, each with other ports in case some are taken."""
    return (local_layout(counts) for _ in range(_ATTEMPTS))


@contextlib.contextmanager
def _open_rendezvous(shared: Path | None) -> Iterator[Rendezvous]:
    if shared is None:
        with tempfile.TemporaryDirectory(prefix="estimator-bridge-") as folder:
            yield Rendezvous(Path(folder))
    else:
        _make_folder(shared, _NO_RENDEZVOUS, "--rendezvous")
        yield Rendezvous(shared.absolute())


def _begin(rendezvous: Rendezvous, layout: Layout) -> None:
    """Clears what an earlier start of this machine's tasks left in a shared folder.

    Raises:
        BridgeError: The training of the rendezvous has ended, which stays so.
    """
    trainers = [task for task in layout.addresses if task.trains]
    is_over = all(rendezvous.has_ended(task) for task in trainers)
    if is_over and any(task.serves for task in layout.tf_configs):
        raise BridgeError(
            "The training of this rendezvous has ended.",
            expected="a new folder for each training",
            received=f"{rendezvous.folder}, where {', '.join(map(str, trainers))} have ended",
            fix="Choose another --rendezvous, e.g. beside model_dir.",
        )
    if not is_over:
        rendezvous.clear_flag(Flag.TRAINED)  # set by a launcher that had no answer for long
    for task in layout.tf_configs:
        rendezvous.clear_reports(task)


def _make_spawner(preload: str | None, log_dir: Path) -> Spawner:
    """Makes a spawner that forks on Linux only: elsewhere a process that has imported much may not survive a fork."""
    if preload is None or sys.platform != "linux":
        return Spawner()
    return Forker(preload, os.environ | _UNBUFFERED, log_dir / "launch.log")


def _make_tasks(layout: Layout, arguments: Sequence[str], rendezvous: Rendezvous, log_dir: Path, say: Sink) -> list[Task]:
    common = {**os.environ, **_UNBUFFERED, VARIABLE: str(rendezvous.folder)}
    return [
        Task(name, arguments, common | {"TF_CONFIG": tf_config}, log_dir / f"{name.file_stem}.log", say)
        for name, tf_config in layout.tf_configs.items()
    ]


def _make_folder(folder: Path, failure: str, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        problem = None if os.access(folder, os.W_OK) else "no permission to write"
    except OSError as error:
        problem = error.strerror
    if problem:
        raise BridgeError(
            failure,
            expected="a folder, or a path where one can be made",
            received=f"{folder}: {problem}",
            fix=f"Choose another {option}.",
        )
