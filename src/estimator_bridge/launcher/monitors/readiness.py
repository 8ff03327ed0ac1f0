"""Before training, and after a restart: are the servers there, are they who they should be, and of one TensorFlow?"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterable, Sequence

from estimator_bridge.cluster.rendezvous import Flag, Recovery, Rendezvous
from estimator_bridge.cluster.server_status import Answer, Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.display import told
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.outcome import Outcome
from estimator_bridge.launcher.processes.task import Sink, State, Task

_ASK_SECONDS = 0.5  # between two rounds of asking, and the deadline of one


class Preflight:
    """Asks servers now and then until all of them are there.

    Args:
        layout: of the cluster.
        tasks: of it, those of this machine.
        meeting: where the tasks are told that all are ready.
        timeout: seconds from the start, of the cluster or of a task, until its server answers; 0: none is asked.
        say: takes lines for the reader.

    Attributes:
        awaited: before whose servers answer nobody is told that all are ready.
        lives: how often launchers had started tasks when all of these answered.
    """

    def __init__(self, layout: Layout, tasks: Sequence[Task], meeting: Rendezvous, timeout: float, say: Sink) -> None:
        self._addresses = layout.addresses
        self.lives = 0
        self.awaited: set[TaskId] = set()
        self._own = layout.tf_configs.keys()
        self._whole = layout.is_whole
        self._tasks = tasks
        self._meeting = meeting
        self._timeout = timeout
        self._say = say
        self._asked_at = self._since = 0.0
        self._incarnations: dict[TaskId, int | None] = {}
        self._before: dict[TaskId, int | None] = {}

    def begin(self) -> None:
        """The whole cluster starts, or starts again: nobody trains before every server has answered."""
        if all(task.name not in self._addresses for task in self._tasks):
            return  # an evaluator alone waits for no server, and others may read what it says
        self._meeting.clear_flag(Flag.READY)
        self._before = {task: number for task, number in self._incarnations.items() if task not in self._own}
        if self._whole:  # of others, one may not have read it yet
            self._meeting.forget_last_step()
        if self._timeout == 0 or len(self._addresses) == 1:  # a chief alone starts no server
            self._meeting.set_flag(Flag.READY)
        else:
            self._await(set(self._addresses))

    def again(self, tasks: Iterable[TaskId]) -> None:
        """These were started again, while the others go on."""
        if self._timeout and len(self._addresses) > 1:
            self._await(self.awaited | (set(tasks) & set(self._addresses)))

    def _await(self, tasks: set[TaskId]) -> None:
        self.awaited = tasks
        self._since = time.monotonic()

    def look(self, lost: Collection[TaskId] = ()) -> Outcome | None:
        """Asks those that have not answered yet.

        Args:
            lost: with their launchers, which have a time of their own to come back, before that of all servers begins.

        Returns:
            How it ends where a server is another's, or late, or of another TensorFlow.
        """
        if not self.awaited or time.monotonic() - self._asked_at < _ASK_SECONDS:
            return None
        # What answers after this look is of these lives: a launcher says so when the old one has ended.
        lives = self._meeting.lives()
        asked = {task: self._addresses[task] for task in self._addresses if task in self.awaited}
        answers = [self._unless_old(answer) for answer in ask(asked, _ASK_SECONDS)]
        self._asked_at = time.monotonic()
        if not self.awaited.isdisjoint(lost):
            self._since = self._asked_at
        mistaken = [told(answer) for answer in answers if answer.health is Health.MISTAKEN]
        missing = [told(answer) for answer in answers if answer.health is Health.MISSING]
        if mistaken or (missing and self._asked_at - self._since > self._timeout):
            return Outcome(1, self._not_ready(mistaken + missing))
        if missing:
            return None
        self.lives = lives
        return self._all_answered(answers)

    def _unless_old(self, answer: Answer) -> Answer:
        """Another launcher that starts its task again, as what trains in step needs it, may not have ended the old one yet."""
        known = self._before.get(answer.task)
        follows = self._meeting.has_flag(Flag.SHARED) and self._meeting.recovery() is Recovery.GANG
        if known is None or answer.incarnation != known or not follows:
            return answer
        return dataclasses.replace(answer, health=Health.MISSING, reason="not started again yet, as all that train in step")

    def _not_ready(self, lines: Sequence[str]) -> BridgeError:
        return BridgeError(
            f"The cluster is not ready after {self._asked_at - self._since:.0f} s.",
            expected="an answer from the TensorFlow server of each task, which train_and_evaluate starts",
            received="\n    ".join(lines),
            fix="Read the logs of these tasks, or give them time with --ready-timeout SECONDS.",
        )

    def _all_answered(self, answers: Sequence[Answer]) -> Outcome | None:
        if (problem := self._versions_differ()) is not None:
            return Outcome(1, problem)
        for answer in answers:
            before = self._incarnations.get(answer.task)
            again = f", started again: it was {before:016x}" if before not in {None, answer.incarnation} else ""
            self._say("launch", told(answer) + again)
            self._incarnations[answer.task] = answer.incarnation
        for task in self._tasks:
            if task.state is State.STARTING and task.name in self.awaited:
                task.state = State.READY
        self.awaited = set()
        self._meeting.set_flag(Flag.READY)
        return None

    def _versions_differ(self) -> BridgeError | None:
        """Servers do not tell their version; tasks report it, so this is of those that share our rendezvous."""
        tasks = {*self._addresses, *(task.name for task in self._tasks)}
        said = {task: version for task in tasks if (version := self._meeting.version(task.job, task.index))}
        if len(set(said.values())) < 2:
            return None
        return BridgeError(
            "The tasks run different versions of TensorFlow.",
            expected="one version in a cluster: servers of two may misunderstand each other",
            received=", ".join(f"{task}: {version}" for task, version in sorted(said.items())),
            fix="Install the same TensorFlow on every machine.",
        )
