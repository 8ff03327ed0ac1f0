"""The supervisor of the tasks on this machine: starts them, restarts those that fail, and ends them together."""

import functools
import signal
import time
from collections.abc import Sequence

from estimator_bridge.cluster.preemption import handle_signals
from estimator_bridge.launcher.audit.audit import Audit
from estimator_bridge.launcher.display import Show
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.monitors.endings import Completion, judge_audit, judge_finish
from estimator_bridge.launcher.monitors.heartbeats import Heartbeats
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.monitors.remote_tasks import RemoteTasks
from estimator_bridge.launcher.monitors.resizing import Regrouping, Resizing
from estimator_bridge.launcher.monitors.restarts import Restarter
from estimator_bridge.launcher.monitors.stall import Stall
from estimator_bridge.launcher.outcome import Judge, Outcome
from estimator_bridge.launcher.processes.task import Task, kill_all

# For workers after the chief has saved and ended, and for all tasks if none can save: a longer wait would be in vain.
_LEAD_SECONDS = 3.0
_POLL_SECONDS = 0.1


class Supervisor:
    """Starts tasks, watches them and ends them. SIGINT, SIGTERM and, unless nohup ignores it, SIGHUP end the launch.

    Args:
        cluster: Cluster whose tasks have not started yet.
        show: Function that displays the tasks.
        audit: Audit of the cluster, if the user asked for one.
        resizing: Changes of the number of workers or of the machines, if the plan allows them.
    """

    def __init__(
        self, cluster: LocalCluster, show: Show, audit: Audit | None = None, resizing: Resizing | Regrouping | None = None
    ) -> None:
        self._cluster = cluster
        self._show = show
        self._signals: list[int] = []  # that arrived, in their order
        self._is_regrouping = isinstance(resizing, Regrouping)
        preflight = Preflight(cluster)
        self._restarter = restarter = Restarter(cluster, preflight)
        self._heartbeats = heartbeats = Heartbeats(cluster, preflight)
        self._remote_tasks = remote_tasks = RemoteTasks(cluster)
        # The first judge that knows an end decides, so causes stand before their consequences: a failure on another machine makes local
        # tasks fail, and the server of a lost machine is late.
        self._judges: tuple[Judge, ...] = (
            self._judge_signals,
            *([resizing.judge] if resizing else []),
            remote_tasks.judge,
            functools.partial(restarter.judge, remote_tasks),
            heartbeats.judge,
            preflight.judge,
            Stall(cluster, restarter, heartbeats).judge,
            functools.partial(judge_finish, cluster),
            functools.partial(judge_audit, cluster, audit),
            Completion(cluster, remote_tasks, heartbeats).judge,
        )

    def run(self) -> Outcome:
        """Runs the tasks until the cluster ends; no process of them is left afterwards."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        with handle_signals(self._signals.append, *numbers):
            try:
                outcome = self._watch()
            finally:
                self._end()
            if outcome.workers is not None and self._signals:  # the user ended what was about to begin again
                outcome = Outcome(128 + self._signals[0])
            if not (self._is_regrouping and outcome.lost and not self._signals):  # which is no failure of this machine
                self._remote_tasks.report(outcome)
        return outcome

    def _watch(self) -> Outcome:
        self._restarter.begin()
        for task in self._cluster.tasks:
            if not self._signals:  # hundreds take minutes to start
                task.start(self._cluster.spawner)
        while True:
            self._update()
            for judge in self._judges:
                if (outcome := judge()) is not None:
                    return outcome
            self._restarter.follow()
            self._restarter.resume()
            time.sleep(_POLL_SECONDS)

    def _judge_signals(self) -> Outcome | None:
        return Outcome(128 + self._signals[0]) if self._signals else None

    def _update(self) -> None:
        self._cluster.update()
        if self._cluster.is_shared:
            self._heartbeats.update()
        self._show(self._cluster.tasks)

    def _end(self) -> None:
        """Sends SIGTERM to all tasks, then SIGKILL after the grace period or at a second signal.

        The chief is asked first, because it needs the others to save: parameter servers hold variables, workers are its servers.
        """
        trainers = self._cluster.trainers
        grace = self._cluster.timeouts.grace
        deadline = time.monotonic() + (min(grace, _LEAD_SECONDS) if self._heartbeats.is_needed_task_lost else grace)
        self._ask_to_end(trainers[:1], deadline)
        self._ask_to_end(trainers, deadline)
        self._let_remote_tasks_save(deadline)
        self._ask_to_end(self._cluster.tasks, deadline)
        kill_all(self._cluster.tasks, self._cluster.say)
        self._update()

    def _let_remote_tasks_save(self, deadline: float) -> None:
        """Keeps parameter servers while tasks of other machines save, if a scheduler has asked all machines to end."""
        serves = any(task.name.job == "ps" and not task.state.has_ended for task in self._cluster.tasks)
        is_needed = serves and self._cluster.is_shared and bool(self._signals)
        while is_needed and not self._must_hurry and time.monotonic() < deadline and not self._remote_tasks.have_all_ended():
            self._update()
            time.sleep(_POLL_SECONDS)

    def _ask_to_end(self, tasks: Sequence[Task], deadline: float) -> None:
        """Sends SIGTERM, and waits until the deadline, or for a moment after the first of the tasks has ended."""
        asked_at = time.monotonic()
        for task in tasks:
            task.terminate()
        while not self._must_hurry and not all(task.state.has_ended for task in tasks):
            first = tasks[0]
            if time.monotonic() >= (max(asked_at, first.ended_at) + _LEAD_SECONDS if first.state.has_ended else deadline):
                return
            self._update()
            time.sleep(_POLL_SECONDS / 5)

    @property
    def _must_hurry(self) -> bool:
        return len(self._signals) > 1
