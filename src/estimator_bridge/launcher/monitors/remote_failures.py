"""What launchers on several machines tell each other of tasks that have ended for good, and not well: the others would wait in vain."""

from __future__ import annotations

import time
from collections.abc import Collection

from estimator_bridge.cluster.rendezvous import Loss, Rendezvous
from estimator_bridge.cluster.tasks import TRAINERS, TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.outcome import Outcome
from estimator_bridge.launcher.processes.task import Sink

_LOOK_SECONDS = 1.0  # between two looks
_RETURN_SECONDS = 60.0  # for a task that was lost before our start: its launcher may be starting again, as ours is


class RemoteFailures:
    """The last words of launchers.

    Args:
        layout: of the cluster.
        meeting: where launchers tell them.
        say: takes a line for the reader.
    """

    def __init__(self, layout: Layout, meeting: Rendezvous, say: Sink) -> None:
        self._own = layout.tf_configs.keys()
        self._trainers = [task for task in layout.addresses if task.job in TRAINERS]
        self._meeting = meeting
        self._say = say
        self._heard: Outcome | None = None
        self._looked_at = 0.0
        self._begun_at = time.monotonic()
        self._before = self._elsewhere()

    def _elsewhere(self) -> dict[TaskId, Loss]:
        losses = {TaskId(*task): loss for task, loss in self._meeting.losses().items()}
        return {task: loss for task, loss in losses.items() if task not in self._own}

    def tell(self, outcome: Outcome) -> None:
        """The others hear how it ended here, unless that is what they said."""
        if outcome.code and outcome is not self._heard:
            loss = Loss(time.time(), outcome.code, None if outcome.problem is None else str(outcome.problem))
            for task in self._own:
                self._meeting.report_loss(task.job, task.index, loss)

    def look(self, told: bool) -> Outcome | None:
        """How it ends where it ended for good on another machine, as it would with all tasks on one.

        Args:
            told: a task of ours has ended since one that trains in step with it was told to end.
        """
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return None
        self._looked_at = now
        losses = self._elsewhere()
        if now - self._begun_at < _RETURN_SECONDS:
            losses = {task: loss for task, loss in losses.items() if self._before.get(task) != loss}
        for task, loss in losses.items():
            if loss.problem is not None:
                self._heard = Outcome(loss.code, _failed(task, loss.problem))
                return self._heard
        if losses and (told or self._is_over_without(losses.keys())):
            names = ", ".join(map(str, losses))
            self._say("launch", f"told to end on another machine: {names}; training does not go on without")
            return Outcome(next(iter(losses.values())).code)
        return None

    def _is_over_without(self, lost: Collection[TaskId]) -> bool:
        recovery = self._meeting.recovery()
        return self.nobody_trains(lost) or not all(recovery.alone(task.job) for task in lost)

    def nobody_trains(self, lost: Collection[TaskId] | None = None) -> bool:
        """Whether every chief and worker has ended, one way or the other."""
        gone = self._elsewhere() if lost is None else lost
        return all(task in gone or self._meeting.has_ended(task.job, task.index) for task in self._trainers)


def _failed(task: TaskId, problem: str) -> BridgeError:
    return BridgeError(
        f"{task} has failed for good on another machine, so it ends here, too.",
        expected="that its launcher starts it again, or ends well",
        received="\n    ".join(["its launcher said", *problem.splitlines()]),
        fix="Mend that, and start the launcher of every task again.",
    )
