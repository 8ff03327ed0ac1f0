"""The machines of an elastic training: which of them take part in a round, agreed upon in the folder that their launchers share.

A training has rounds, each with its own machines. A launcher says in a file that it is there, the first of those that trained before
decides when all are there, and each begins the round that it finds decided. A machine that is there and not needed stands by.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import Layout, make_layout

_LOOK_SECONDS = 0.5
_BEAT_SECONDS = 5.0


class Machines:
    """The machines that can take part, and the round that this one is in.

    Args:
        folder: Folder that all launchers share.
        hosts: Address of each machine, in the order in which they take part.
        own: Address of this machine.
        allowed: Numbers of machines that the plan allows, ascending.
        ready: Seconds for all machines to be there at the start.
        lost: Seconds without a sign of those that train, after which machines that stand by go on without them.

    Attributes:
        members: Addresses of the machines of this round.
    """

    def __init__(
        self, folder: Path, hosts: Sequence[str], own: str, allowed: Sequence[int], *, ready: float, lost: float
    ) -> None:
        self._folder = folder
        self._hosts = list(hosts)
        self._own = own
        self._allowed = allowed
        self._ready, self._lost = ready, lost
        self._round = -1
        self._beat_at = 0.0
        self._missed: list[str] = []  # since the last round
        self.members: list[str] = []

    @property
    def folder(self) -> Path:
        """The rendezvous of this round."""
        return self._folder / f"round-{self._round}"

    def join(self, say: Callable[[str], None], lost: Collection[TaskId] = ()) -> Layout | None:
        """Waits for the next round that this machine takes part in.

        Args:
            say: Function that prints a line to the user.
            lost: Tasks of the last round for which nobody waits.

        Returns:
            The layout of its task; None if the training has ended meanwhile.

        Raises:
            BridgeError: Fewer machines than the plan allows are there, or the training had ended before.
        """
        if not self.members:
            self._begin()
        before, self.members = self.members, []
        self._missed = [host for task, host in zip(_tasks(before), before, strict=True) if task in lost]
        self._round = max(self._round, self._latest()) + 1
        self._come()
        try:
            while (members := self._wait()) and self._own not in members:
                say(f"round {self._round} of the training runs on {', '.join(members)}; this machine stands by")
                self._round += 1
                self._come()
            self.members = members
        finally:
            if not self.members:
                self._there_file(self._round).unlink(missing_ok=True)
        return self._layout() if members else None

    def wanted(self) -> str:
        """Returns why this round should end so that another one begins, or nothing; says that this machine trains."""
        self._beat("alive")
        there = self._there(self._round + 1)
        if any(host in self.members for host in there):
            return "another machine begins the next round"
        if self._most(len(self.members) + len(there)) > len(self.members):
            return f"more machines are there: {', '.join(there)}"
        return ""

    def end(self, code: int) -> None:
        """Says that the training has ended, so that machines that stand by end, too."""
        self._write("ended", str(code))

    @property
    def exit_code(self) -> int:
        """The exit code of a training that has ended on other machines."""
        return int(self._read("ended") or 0)

    def _begin(self) -> None:
        """Drops the end of a training that failed.

        Raises:
            BridgeError: The training has succeeded, which stays so.
        """
        if self._read("ended") == "0":
            raise BridgeError(
                "The training of this rendezvous has ended.",
                expected="a new folder for each training",
                received=str(self._folder),
                fix="Choose another --rendezvous, e.g. beside model_dir.",
            )
        (self._folder / "ended").unlink(missing_ok=True)

    def _wait(self) -> list[str]:
        """Returns the machines of the round once they are decided; nothing if the training ended first."""
        began = heard_at = time.monotonic()
        heard = self._read("alive")
        before = self._decided(self._round - 1)
        while not (decided := self._decided(self._round)):
            if self._read("ended") is not None:
                return []
            self._beat(self._there_file(self._round).name)
            now, there = time.monotonic(), self._there(self._round)
            if (sign := self._read("alive")) != heard:
                heard, heard_at = sign, now
            is_late = now - began > self._ready
            deciding = [host for host in there if host in before]
            if not deciding and (not before or now - heard_at > self._lost):
                deciding = there
            expected = {*(before or self._hosts)}.difference(self._gone(), self._reported(before))
            stands_by = bool(before) and self._own not in before  # so none of the last round is coming
            if deciding[:1] == [self._own] and (is_late or stands_by or expected <= {*there}):
                self._decide(there, is_late)
            time.sleep(_LOOK_SECONDS)
        return decided

    def _gone(self) -> set[str]:
        """Returns the machines that those that are there miss since the last round."""
        files = self._folder.glob(f"there-{self._round}-*")
        return {host for file in files for host in (self._read(file.name) or "").split()[1:]}

    def _reported(self, before: Sequence[str]) -> set[str]:
        """Returns the machines of the last round whose launchers have ended."""
        failures = Rendezvous(self._folder / f"round-{self._round - 1}").failures()
        return {host for task, host in zip(_tasks(before), before, strict=True) if task in failures}

    def _decide(self, there: Sequence[str], is_late: bool) -> None:
        """Writes the machines of the round, unless another launcher has done so meanwhile.

        Raises:
            BridgeError: Too few are there.
        """
        number = self._most(len(there))
        if number:
            aside = self._folder / f"~{self._index}"
            aside.write_text(json.dumps(there[:number]), encoding="ascii")
            with contextlib.suppress(FileExistsError):
                os.link(aside, self._folder / f"round-{self._round}.json")
            aside.unlink()
        elif is_late:
            raise BridgeError(
                "Too few machines are there for the training.",
                expected=f"{self._allowed[0]} or more, each with its launcher, within {self._ready:g} s",
                received=", ".join(there),
                fix="Start the launchers of the others, or allow fewer machines in the plan.",
            )

    def _decided(self, number: int) -> list[str]:
        return list(json.loads(self._read(f"round-{number}.json") or "[]"))

    def _layout(self) -> Layout:
        tasks = _tasks(self.members)
        return make_layout(dict(zip(tasks, self.members, strict=True)), [tasks[self.members.index(self._own)]])

    def _most(self, number: int) -> int:
        return max((one for one in self._allowed if one <= number), default=0)

    def _latest(self) -> int:
        """Returns the number of the last round that was decided; -1 before the first."""
        return max((int(file.stem.removeprefix("round-")) for file in self._folder.glob("round-*.json")), default=-1)

    def _there(self, number: int) -> list[str]:
        """Returns the machines that are there for a round, in their order.

        A launcher that waits writes its file again and again. The clock is that of the file system, whatever each machine thinks.
        """
        written = {}
        for file in [*self._folder.glob("there-*"), self._folder / "alive"]:
            with contextlib.suppress(FileNotFoundError):  # a machine that has just gone
                written[file.name] = file.stat().st_mtime
        newest = max(written.values(), default=0.0)
        names = [f"there-{number}-{index}" for index in range(len(self._hosts))]
        return [host for host, name in zip(self._hosts, names, strict=True) if newest - written.get(name, 0.0) < self._lost]

    @property
    def _index(self) -> int:
        return self._hosts.index(self._own)

    def _there_file(self, number: int) -> Path:
        return self._folder / f"there-{number}-{self._index}"

    def _come(self) -> None:
        """Says that this machine is there for the round.

        Raises:
            BridgeError: The folder cannot be written, so the others would never see it.
        """
        self._beat_at = time.monotonic()
        try:
            self._write(self._there_file(self._round).name, self._sign())
        except OSError as error:
            raise BridgeError(
                "The other machines cannot be told that this one is there.",
                expected="a rendezvous folder that can be written",
                received=f"{self._folder}: {error.strerror}",
                fix="Make room there, or choose another --rendezvous, and start the launcher again.",
            ) from error

    def _beat(self, name: str) -> None:
        """Writes a file again, if it is time to."""
        if time.monotonic() - self._beat_at >= _BEAT_SECONDS:
            self._beat_at = time.monotonic()
            with contextlib.suppress(OSError):  # a full disk is no reason to end
                self._write(name, self._sign())

    def _sign(self) -> str:
        """Returns a text that no file has had, with the machines that are missed."""
        return " ".join([str(time.time_ns()), *self._missed])

    def _read(self, name: str) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / name).read_text(encoding="ascii")
        return None

    def _write(self, name: str, text: str) -> None:
        aside = self._folder / f"~{self._index}-{name}"
        aside.write_text(text, encoding="ascii")
        aside.replace(self._folder / name)


def _tasks(machines: Sequence[str]) -> list[TaskId]:
    """Returns the task of each machine of a round."""
    return [TaskId("worker", index - 1) if index else TaskId("chief", 0) for index in range(len(machines))]
