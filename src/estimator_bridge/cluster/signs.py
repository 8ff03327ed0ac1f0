"""Signs of life that launchers on several machines give each other: one that is lost with its machine has no last words."""

from __future__ import annotations

import contextlib
import time

from estimator_bridge.cluster.layout import Layout, TaskId
from estimator_bridge.cluster.task import Sink
from estimator_bridge.compat.rendezvous import Mark, Rendezvous

_GIVE_SECONDS = 5.0
_SILENT_SECONDS = 45.0  # a network file system may show what was there half a minute ago


class Signs:
    """Gives ours, and says whose do not come any more.

    Nobody is ended for that: asynchronous training goes on without a worker, and a scheduler may start the launcher again.

    Args:
        layout: of the cluster.
        meeting: where launchers meet.
        say: takes a line for the reader.
    """

    def __init__(self, layout: Layout, meeting: Rendezvous, say: Sink) -> None:
        self._own = layout.tf_configs.keys()
        self._others = layout.addresses.keys() - self._own
        self._meeting = meeting
        self._say = say
        self._looked_at = 0.0
        self._changes: dict[TaskId, tuple[str, float]] = {}  # the last sign, and when it came by our clock
        self._silent: set[TaskId] = set()

    def look(self) -> None:
        """Asked now and then."""
        now = time.monotonic()
        if now - self._looked_at < _GIVE_SECONDS or self._meeting.said(Mark.TRAINED):
            return
        self._looked_at = now
        for task in self._own:
            with contextlib.suppress(OSError):  # a full disk is no reason to end
                self._meeting.give_sign(task.job, task.index)
        lost = self._meeting.losses()
        for task in sorted(self._others):
            if (task.job, task.index) not in lost and not self._meeting.has_ended(task.job, task.index):
                self._listen(task, now)

    def _listen(self, task: TaskId, now: float) -> None:
        if (sign := self._meeting.sign(task.job, task.index)) is None:
            return  # it has not started yet
        before, since = self._changes.get(task, ("", now))
        if sign != before:
            self._changes[task] = (sign, now)
            if task in self._silent:
                self._silent.remove(task)
                self._say("launch", f"the launcher of {task} is there again")
        elif now - since > _SILENT_SECONDS and task not in self._silent:
            self._silent.add(task)
            self._say(
                "launch",
                f"the launcher of {task} has given no sign of life for {now - since:.0f} s: it was killed, or its machine or that "
                "machine's way to the rendezvous is lost",
            )
