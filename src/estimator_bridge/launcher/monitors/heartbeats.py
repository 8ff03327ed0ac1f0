"""Signs of life that launchers on several machines give each other: one that is lost with its machine has no last words."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import time
from collections.abc import Collection, Mapping

from estimator_bridge.cluster.rendezvous import Flag, Rendezvous
from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import Layout
from estimator_bridge.launcher.monitors.readiness import Preflight
from estimator_bridge.launcher.outcome import Outcome, Timeouts
from estimator_bridge.launcher.processes.task import Sink

_GIVE_SECONDS = 5.0
_SILENT_SECONDS = 40.0  # a network file system may show what was there half a minute ago
_ASK_SECONDS = 2.0


class _State(enum.Enum):
    HEARD = enum.auto()
    SILENT = enum.auto()
    """Its task's server answers, or is not asked."""
    LOST = enum.auto()
    """Its task's server does not answer either."""


@dataclasses.dataclass
class _Launcher:
    """Of one task elsewhere.

    Attributes:
        sign: the last one.
        heard: since we began; what we find in the folder may be of a life before.
        silence: seconds since the last sign in which we listened.
        state: as the reader was told.
        reason: why its task's server is taken for gone.
    """

    sign: str
    heard: bool = False
    silence: float = 0.0
    state: _State = _State.HEARD
    reason: str = ""


class Heartbeats:
    """Gives ours, says whose do not come any more, and judges when it makes no sense to wait for them.

    Args:
        layout: of the cluster.
        meeting: where launchers meet.
        limits: a launcher is waited for until ``lost`` seconds after its last sign; with ``ready`` of 0 no server is asked, and so none lost.
        preflight: knows before whose servers answer nobody trains.
        say: takes a line for the reader.
    """

    def __init__(self, layout: Layout, meeting: Rendezvous, limits: Timeouts, preflight: Preflight, say: Sink) -> None:
        self._addresses = layout.addresses
        self._own = layout.tf_configs.keys()
        self._meeting = meeting
        self._limits = limits
        self._preflight = preflight
        self._say = say
        self._looked_at = 0.0
        self._launchers: dict[TaskId, _Launcher] = {}

    def look(self) -> None:
        """Asked now and then."""
        now = time.monotonic()
        passed = now - self._looked_at
        if passed < _GIVE_SECONDS or self._meeting.has_flag(Flag.TRAINED):
            return
        self._looked_at = now
        for task in self._own:
            with contextlib.suppress(OSError):  # a full disk is no reason to end
                self._meeting.give_sign(task.job, task.index)
        told = self._meeting.losses()
        for task in sorted(self._addresses.keys() - self._own):
            if (task.job, task.index) in told or self._meeting.has_ended(task.job, task.index):
                self._launchers.pop(task, None)
            else:
                # Where we were stopped ourselves, all may have been, and come back a moment after us.
                self._listen(task, min(passed, 2 * _GIVE_SECONDS))
        missing = self._missing()
        for task, launcher in self._launchers.items():
            launcher.reason = missing.get(task, "")
            self._tell(task, launcher)

    def _listen(self, task: TaskId, passed: float) -> None:
        if (sign := self._meeting.sign(task.job, task.index)) is None:
            return  # it has not started yet
        launcher = self._launchers.setdefault(task, _Launcher(sign))
        if sign != launcher.sign:
            launcher.sign, launcher.heard, launcher.silence = sign, True, 0.0
        elif launcher.heard:
            launcher.silence += passed

    def _missing(self) -> Mapping[TaskId, str]:
        """Whose launchers are silent and whose servers do not answer, and why not."""
        silent = {task: self._addresses[task] for task, each in self._launchers.items() if each.silence > _SILENT_SECONDS}
        answers = ask(silent, _ASK_SECONDS) if silent and self._limits.ready else []
        return {answer.task: answer.reason for answer in answers if answer.health is not Health.READY}

    def _tell(self, task: TaskId, launcher: _Launcher) -> None:
        silent = launcher.silence > _SILENT_SECONDS
        state = _State.LOST if launcher.reason else _State.SILENT if silent else _State.HEARD
        if state is launcher.state:
            return
        launcher.state = state
        silence = f"no sign of life for {launcher.silence:.0f} s"
        if state is _State.HEARD:
            line = f"the launcher of {task} is there again"
        elif state is _State.SILENT:
            serving = "answers" if self._limits.ready else "is not asked (--ready-timeout 0)"
            line = f"the launcher of {task} gives {silence}: it is stopped, or its way to the rendezvous is lost; its server {serving}"
        else:
            line = f"{task} at {self._addresses[task]} is lost: its launcher gives {silence}, its server no answer ({launcher.reason}); "
            line += self._prospect(task, launcher)
        self._say("launch", line)

    def _prospect(self, task: TaskId, launcher: _Launcher) -> str:
        if not self._needs(task):
            return "training goes on without it, and takes it back"
        left = max(self._limits.lost - launcher.silence, 0.0)
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + left))
        return f"training does not go on without it, and ends if it is not there again by {until} (--return-timeout)"

    @property
    def lost(self) -> Collection[TaskId]:
        """Of whom neither launcher nor server is there, by the last look."""
        return {task for task, launcher in self._launchers.items() if launcher.state is _State.LOST}

    @property
    def given_up(self) -> Collection[TaskId]:
        """Those of them that have been waited for long enough."""
        return {task for task in self.lost if self._launchers[task].silence >= self._limits.lost}

    @property
    def strands(self) -> bool:
        """Whether somebody is lost without whom nobody trains, and so nobody saves."""
        return any(self._needs(task) for task in self.lost)

    def judge(self) -> Outcome | None:
        """How it ends where somebody is given up without whom it does not go on."""
        for task in sorted(self.given_up):
            if self._needs(task):
                return Outcome(1, self._is_gone(task, self._launchers[task]))
        return None

    def _needs(self, task: TaskId) -> bool:
        return task in self._preflight.awaited or not self._meeting.recovery().goes_on_without(task.job)

    def _is_gone(self, task: TaskId, launcher: _Launcher) -> BridgeError:
        return BridgeError(
            f"{task} at {self._addresses[task]} is lost, and training does not go on without it.",
            expected=f"a sign of life of its launcher, or an answer of its server, within {self._limits.lost:g} s",
            received=f"no sign of life for {launcher.silence:.0f} s; {launcher.reason}",
            fix="Look after that machine, and start the launcher of every task again: training goes on from the last checkpoint. Where a "
            "scheduler starts a lost launcher again, give it the time that takes with --return-timeout SECONDS.",
        )
