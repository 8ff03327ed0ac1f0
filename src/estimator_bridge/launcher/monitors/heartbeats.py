"""Heartbeats that launchers on several machines give each other: a launcher that is lost with its machine cannot report that."""

import contextlib
import dataclasses
import enum
import math
import time
from collections.abc import Collection, Mapping

from estimator_bridge.cluster.rendezvous import Flag
from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.local_cluster import LocalCluster
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.outcome import Outcome

_BEAT_SECONDS = 5.0
_SILENT_SECONDS = 40.0  # a network file system may show the state of half a minute ago
_ASK_SECONDS = 2.0


class Presence(enum.Enum):
    """The state of another machine's launcher."""

    PRESENT = enum.auto()
    SILENT = enum.auto()
    """Its heartbeats have stopped; its task's server answers, or is not asked."""
    LOST = enum.auto()
    """Its heartbeats have stopped, and its task's server does not answer."""


@dataclasses.dataclass
class _Launcher:
    """The launcher of one task on another machine.

    Attributes:
        heartbeat: Last heartbeat.
        has_beaten: True if a heartbeat arrived since this launcher started; the first one found may be of an earlier start.
        silence: Seconds since the last heartbeat during which this launcher listened.
        presence: State that was printed last.
        reason: Why its task's server counts as gone.
    """

    heartbeat: str
    has_beaten: bool = False
    silence: float = 0.0
    presence: Presence = Presence.PRESENT
    reason: str = ""


class Heartbeats:
    """Gives the heartbeats of this launcher, prints whose heartbeats stop, and ends the launch if waiting for them makes no sense.

    Args:
        cluster: Cluster whose ``lost`` is the limit. If its ``ready`` is 0 no server is asked, so no launcher counts as lost.
        preflight: Check that knows which servers must answer before training; it learns which tasks are lost.
    """

    def __init__(self, cluster: LocalCluster, preflight: Preflight) -> None:
        self._cluster = cluster
        self._addresses = cluster.layout.addresses
        self._own = cluster.layout.tf_configs.keys()
        self._preflight = preflight
        self._updated_at = 0.0
        self._launchers: dict[TaskId, _Launcher] = {}

    def update(self) -> None:
        """Gives a heartbeat and reads those of other launchers, if it is time to."""
        now = time.monotonic()
        passed = now - self._updated_at
        if passed < _BEAT_SECONDS or self._cluster.rendezvous.has_flag(Flag.TRAINED):
            return
        self._updated_at = now
        for task in self._own:
            with contextlib.suppress(OSError):  # a full disk is no reason to end
                self._cluster.rendezvous.beat(task)
        failures = self._cluster.rendezvous.failures()
        for task in sorted(self._addresses.keys() - self._own):
            if task in failures or self._cluster.rendezvous.has_ended(task):
                self._launchers.pop(task, None)
            else:
                # If this launcher was stopped, all may have been, and come back a moment after it.
                self._listen(task, min(passed, 2 * _BEAT_SECONDS))
        missing = self._ask_silent()
        for task, launcher in self._launchers.items():
            launcher.reason = missing.get(task, "")
            self._report_change(task, launcher)
        self._preflight.lost = self.lost

    def _listen(self, task: TaskId, passed: float) -> None:
        if (heartbeat := self._cluster.rendezvous.heartbeat(task)) is None:
            return  # it has not started yet
        launcher = self._launchers.setdefault(task, _Launcher(heartbeat))
        if heartbeat != launcher.heartbeat:
            launcher.heartbeat, launcher.has_beaten, launcher.silence = heartbeat, True, 0.0
        elif launcher.has_beaten:
            launcher.silence += passed

    def _ask_silent(self) -> Mapping[TaskId, str]:
        """Asks the servers of silent launchers, and returns why each missing one counts as gone."""
        silent = {task: self._addresses[task] for task, each in self._launchers.items() if each.silence > _SILENT_SECONDS}
        answers = ask(silent, _ASK_SECONDS) if silent and self._cluster.timeouts.ready else []
        return {answer.task: answer.reason for answer in answers if answer.health is not Health.READY}

    def _report_change(self, task: TaskId, launcher: _Launcher) -> None:
        is_silent = launcher.silence > _SILENT_SECONDS
        presence = Presence.LOST if launcher.reason else Presence.SILENT if is_silent else Presence.PRESENT
        if presence is not launcher.presence:
            launcher.presence = presence
            self._cluster.say(self._describe(task, launcher))

    def _describe(self, task: TaskId, launcher: _Launcher) -> str:
        silence = f"no heartbeat for {launcher.silence:.0f} s"
        if launcher.presence is Presence.PRESENT:
            return f"the launcher of {task} is back"
        if launcher.presence is Presence.SILENT:
            server = "answers" if self._cluster.timeouts.ready else "was not asked (--ready-timeout 0)"
            return f"the launcher of {task} gave {silence}: it is stopped, or cannot reach the rendezvous; its server {server}"
        loss = (
            f"{task} at {self._addresses[task]} is lost: its launcher gave {silence}, its server no answer ({launcher.reason})"
        )
        if not self._is_needed(task):
            return f"{loss}; training goes on without it, and accepts it when it is back"
        left = max(self._cluster.timeouts.lost - launcher.silence, 0.0)
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + left))
        return f"{loss}; training does not go on without it, and ends if it is not back by {until} (--return-timeout)"

    def presence(self, task: TaskId) -> Presence:
        """Returns the state of the launcher of a task on another machine."""
        return self._launchers[task].presence if task in self._launchers else Presence.PRESENT

    @property
    def lost(self) -> Collection[TaskId]:
        """The tasks whose launcher and server were both missing at the last update."""
        return {task for task in self._launchers if self.presence(task) is Presence.LOST}

    @property
    def shortest_silence(self) -> float:
        """Seconds since the last heartbeat of the task that was lost last; infinite if none is lost."""
        return min((self._launchers[task].silence for task in self.lost), default=math.inf)

    @property
    def given_up(self) -> Collection[TaskId]:
        """The lost tasks that the launcher has waited for long enough."""
        return {task for task in self.lost if self._launchers[task].silence >= self._cluster.timeouts.lost}

    @property
    def is_needed_task_lost(self) -> bool:
        """True if a lost task makes training impossible, so that no other task can save."""
        return any(self._is_needed(task) for task in self.lost)

    def judge(self) -> Outcome | None:
        """Returns the end if a task that training needs is given up."""
        for task in sorted(self.given_up):
            if self._is_needed(task):
                problem = BridgeError(
                    f"{task} at {self._addresses[task]} is lost, and training does not go on without it.",
                    expected=f"a heartbeat of its launcher, or an answer of its server, within {self._cluster.timeouts.lost:g} s",
                    received=f"no heartbeat for {self._launchers[task].silence:.0f} s; {self._launchers[task].reason}",
                    fix="Check that machine, and start the launcher of every task again: training goes on from the last checkpoint. If a "
                    "scheduler restarts a lost launcher, give it the necessary time with --return-timeout SECONDS.",
                )
                return Outcome(1, problem, lost=self.given_up)
        return None

    def _is_needed(self, task: TaskId) -> bool:
        return task in self._preflight.awaited or not self._cluster.rendezvous.recovery().goes_on_without(task.job)
