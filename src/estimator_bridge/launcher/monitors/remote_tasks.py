"""Tasks on other machines: the failures that their launchers report, and whether chief and workers still train."""

import time
from collections.abc import Collection

from estimator_bridge.cluster.rendezvous import Flag, TaskFailure
from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.outcome import Outcome

_LOOK_SECONDS = 1.0  # between two looks for failures
_RETURN_SECONDS = 60.0  # for a task that failed before this launcher's start: its launcher may be starting again, too
_ASK_SECONDS = 5.0  # between two rounds of questions
_ANSWER_SECONDS = 1.0


class RemoteTasks:
    """Tells how the tasks on other machines are.

    Launchers report failures to each other: the other tasks would wait in vain. If no chief or worker is on this machine, theirs are asked
    whether they still run, because the tasks here wait for their end.

    Args:
        cluster: Cluster that trains: servers answer within ``ready`` from now, and count as gone after ``finish`` without any answer.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._own = cluster.layout.tf_configs.keys()
        self._trainers = {task: address for task, address in cluster.layout.addresses.items() if task.trains}
        self._received: Outcome | None = None
        self._looked_at = 0.0
        self._started_at = time.monotonic()
        self._before = self._remote()
        self._asked_at = 0.0
        can_answer = cluster.timeouts.ready > 0 and cluster.layout.has_servers
        self._answered_at = self._started_at + cluster.timeouts.ready if can_answer else None

    def _remote(self) -> dict[TaskId, TaskFailure]:
        return {task: failure for task, failure in self._cluster.rendezvous.failures().items() if task not in self._own}

    def report(self, outcome: Outcome) -> None:
        """Reports a failure of this machine, unless it is the consequence of a reported one."""
        if outcome.code and outcome is not self._received:
            failure = TaskFailure(time.time(), outcome.code, None if outcome.problem is None else str(outcome.problem))
            for task in self._own:
                self._cluster.rendezvous.report_failure(task, failure)

    def judge(self) -> Outcome | None:
        """Returns the end if a failure on another machine ends this launch, as it would with all tasks on one machine."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return None
        self._looked_at = now
        failures = self._remote()
        if now - self._started_at < _RETURN_SECONDS:
            failures = {task: failure for task, failure in failures.items() if self._before.get(task) != failure}
        for task, failure in failures.items():
            if failure.problem is not None:
                self._received = Outcome(failure.code, _remote_failure(task, failure.problem))
                return self._received
        if failures and (any(task.was_preempted for task in self._cluster.trainers) or self._ends_training(failures.keys())):
            names = ", ".join(map(str, failures))
            self._cluster.say(f"asked to end on another machine: {names}; training does not go on without it")
            return Outcome(next(iter(failures.values())).code, lost=[*failures])
        return None

    def _ends_training(self, lost: Collection[TaskId]) -> bool:
        recovery = self._cluster.rendezvous.recovery()
        return self.have_all_ended(lost) or not all(recovery.restarts_alone(task.job) for task in lost)

    def have_all_ended(self, lost: Collection[TaskId] | None = None) -> bool:
        """Returns True if every chief and worker has ended or failed.

        Args:
            lost: Tasks that failed on other machines; by default those whose failures were reported.
        """
        gone = self._remote() if lost is None else lost
        return all(task in gone or self._cluster.rendezvous.has_ended(task) for task in self._trainers)

    def is_training_over(self, given_up: Collection[TaskId] = ()) -> bool:
        """Returns True if every chief and worker has ended, or all have been gone for so long that it makes no difference.

        Args:
            given_up: Lost tasks without which the others went on.
        """
        if self.have_all_ended(given_up):
            return True
        if self._cluster.trainers:
            return False
        now, seconds = time.monotonic(), self._cluster.timeouts.finish
        if now - self._asked_at >= _ASK_SECONDS:
            self._asked_at = now
            if self._does_any_answer():
                self._answered_at = now
        if self._answered_at is None or now - self._answered_at <= seconds:
            return False
        self._cluster.say(f"no chief or worker has answered for {seconds:g} s: training counts as over")
        return True

    def are_training(self) -> bool:
        """Returns True if training goes on, by the reports of the launchers, or by an answer if the launchers share no folder."""
        if self._cluster.rendezvous.has_flag(Flag.SHARED):
            return not (self._cluster.rendezvous.has_flag(Flag.TRAINED) or self.have_all_ended(()))
        return self._does_any_answer()

    def _does_any_answer(self) -> bool:
        return any(answer.health is Health.READY for answer in ask(self._trainers, _ANSWER_SECONDS))


def _remote_failure(task: TaskId, problem: str) -> BridgeError:
    return BridgeError(
        f"{task} has failed on another machine and is not restarted, so this launch ends, too.",
        expected="a restart of the task, or its end without an error",
        received="\n    ".join(["its launcher reported:", *problem.splitlines()]),
        fix="Correct that error, and start the launcher of every task again.",
    )
