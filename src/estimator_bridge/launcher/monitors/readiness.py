"""Readiness before training and after a restart: every server answers, is the right task, and runs the same TensorFlow."""

import dataclasses
import time
from collections.abc import Collection, Iterable, Sequence

from estimator_bridge.cluster.rendezvous import Flag, Recovery
from estimator_bridge.cluster.server_status import Answer, Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.outcome import Outcome
from estimator_bridge.launcher.processes.task import State

_ASK_SECONDS = 0.5  # between two rounds of questions, and the deadline of a round


class Preflight:
    """Asks servers repeatedly until all of them have answered.

    Args:
        cluster: Cluster that starts, whose ``ready`` is the limit; 0 skips the check.

    Attributes:
        awaited: Tasks whose servers must answer before READY is published.
        gang_starts: Number of starts of tasks in step that launchers had reported when all servers answered.
        lost: Tasks whose launchers are lost, too; the time of all servers begins when these are back.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self.awaited: set[TaskId] = set()
        self.gang_starts = 0
        self.lost: Collection[TaskId] = ()
        self._cluster = cluster
        self._addresses = cluster.layout.addresses
        self._asked_at = self._since = 0.0
        self._incarnations: dict[TaskId, int | None] = {}
        self._before: dict[TaskId, int | None] = {}

    def begin(self) -> None:
        """Begins a start of the whole cluster: no task trains before every server has answered."""
        if all(task.name not in self._addresses for task in self._cluster.tasks):
            return  # an evaluator waits for no server, and other launchers read the flags
        self._cluster.rendezvous.clear_flag(Flag.READY)
        own = self._cluster.layout.tf_configs
        self._before = {task: number for task, number in self._incarnations.items() if task not in own}
        if self._cluster.layout.is_whole:  # a task of another launcher may not have read the last step yet
            self._cluster.rendezvous.clear_last_step()
        if self._cluster.timeouts.ready == 0 or not self._cluster.layout.has_servers:
            self._cluster.rendezvous.set_flag(Flag.READY)
        else:
            self._await(set(self._addresses))

    def await_again(self, tasks: Iterable[TaskId]) -> None:
        """Begins to wait for tasks that were restarted while the others go on."""
        if self._cluster.timeouts.ready and self._cluster.layout.has_servers:
            self._await(self.awaited | (set(tasks) & set(self._addresses)))

    def _await(self, tasks: set[TaskId]) -> None:
        self.awaited = tasks
        self._since = time.monotonic()

    def judge(self) -> Outcome | None:
        """Asks the servers that have not answered yet. Returns the end if one is late, a wrong task, or of another TensorFlow."""
        if not self.awaited or time.monotonic() - self._asked_at < _ASK_SECONDS:
            return None
        # A launcher reports a start after the old tasks have ended, so an answer after this line is of no older start.
        starts = self._cluster.rendezvous.gang_starts()
        asked = {task: self._addresses[task] for task in self._addresses if task in self.awaited}
        answers = [self._reject_old(answer) for answer in ask(asked, _ASK_SECONDS)]
        self._asked_at = time.monotonic()
        if not self.awaited.isdisjoint(self.lost):
            self._since = self._asked_at
        mistaken = [str(answer) for answer in answers if answer.health is Health.MISTAKEN]
        missing = [str(answer) for answer in answers if answer.health is Health.MISSING]
        if mistaken or (missing and self._asked_at - self._since > self._cluster.timeouts.ready):
            silent = [answer.task for answer in answers if answer.health is Health.MISSING]
            return Outcome(1, self._not_ready(mistaken + missing), lost=[] if mistaken else silent)
        if missing:
            return None
        self.gang_starts = starts
        return self._finish(answers)

    def _reject_old(self, answer: Answer) -> Answer:
        """Counts the old server of a task in step as missing: another launcher that restarts the task may not have ended it yet."""
        known = self._before.get(answer.task)
        is_in_step = self._cluster.rendezvous.has_flag(Flag.SHARED) and self._cluster.rendezvous.recovery() is Recovery.GANG
        if known is None or answer.incarnation != known or not is_in_step:
            return answer
        return dataclasses.replace(answer, health=Health.MISSING, reason="not restarted yet, like all tasks that train in step")

    def _not_ready(self, lines: Sequence[str]) -> BridgeError:
        return BridgeError(
            f"The cluster is not ready after {self._asked_at - self._since:.0f} s.",
            expected="an answer from the TensorFlow server of each task, which train_and_evaluate starts",
            received="\n    ".join(lines),
            fix="Read the logs of these tasks, or give them time with --ready-timeout SECONDS.",
        )

    def _finish(self, answers: Sequence[Answer]) -> Outcome | None:
        if (problem := self._compare_versions()) is not None:
            return Outcome(1, problem)
        for answer in answers:
            before = self._incarnations.get(answer.task)
            restart = f", restarted: it was {before:016x}" if before not in {None, answer.incarnation} else ""
            self._cluster.say(f"{answer}{restart}")
            self._incarnations[answer.task] = answer.incarnation
        for task in self._cluster.tasks:
            if task.state is State.STARTING and task.name in self.awaited:
                task.state = State.READY
        self.awaited = set()
        self._cluster.rendezvous.set_flag(Flag.READY)
        return None

    def _compare_versions(self) -> BridgeError | None:
        """Compares the TensorFlow versions of all tasks at this rendezvous; servers do not tell theirs."""
        tasks = {*self._addresses, *(task.name for task in self._cluster.tasks)}
        versions = {task: version for task in tasks if (version := self._cluster.rendezvous.version(task))}
        if len(set(versions.values())) < 2:
            return None
        return BridgeError(
            "The tasks run different versions of TensorFlow.",
            expected="one version in a cluster: servers of two may misunderstand each other",
            received=", ".join(f"{task}: {version}" for task, version in sorted(versions.items())),
            fix="Install the same TensorFlow on every machine.",
        )
