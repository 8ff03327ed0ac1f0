"""One task of a cluster on this machine: its process, its log, and how it is doing."""

from __future__ import annotations

import collections
import contextlib
import enum
import os
import re
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from estimator_bridge.cluster.preemption import EXIT_CODE
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.processes.guard import ENDED, STARTED, TERMINATE
from estimator_bridge.launcher.processes.spawner import Spawner
from estimator_bridge.launcher.task_log import Log

Sink = Callable[[str, str], None]
"""Gets whose line it is, and the line."""

_LINES_KEPT = 200  # of the output, to say why a task failed
_RATE_SECONDS = 10.0  # over which steps are counted
_LATE_SECONDS = 2.0  # a report comes each second; without one for longer, the rate falls
_BUFFER = 4096
_KILL_SECONDS = 10.0  # for a guard to end what is left
_PIPE_SECONDS = 2.0  # for the output's end, once the process has ended


class State(enum.Enum):
    """Of a task."""

    STARTING = "starting"
    READY = "ready"
    TRAINING = "training"
    RESTARTING = "restarting"
    """Ended, and to be started again in a moment."""
    DONE = "done"
    """Ended with exit code 0."""
    FAILED = "failed"
    """Ended with another one, or before its time."""
    STOPPED = "stopped"
    """Ended because the launcher asked."""

    @property
    def ended(self) -> bool:
        """Whether there is no process any more."""
        return self in {State.DONE, State.FAILED, State.STOPPED}


class Task:
    """A process under a guard (``cluster.guard``), so that it ends with us, however we end.

    Args:
        name: of the task.
        arguments: of Python: "-m", a module's name, and its own.
        environment: for it, TF_CONFIG included; the command line of a process is for all to read.
        log: file that its output is appended to.
        sink: gets its output line by line, from a thread.

    Attributes:
        state: how it is doing.
        exit_code: once it has ended.
        started_at: ``time.monotonic()`` of its start.
        ended_at: and of its end.
        stepped_at: and of its last new step since its start; None before the first.
        due_at: and of its next start, while it waits for that.
        step: the global step that it reported last.
        restarts: how often it was started again.
        last_failure: exit code and global step of the last failure after which it was.
        tail: its last lines.
    """

    def __init__(self, name: TaskId, arguments: Sequence[str], environment: Mapping[str, str], log: Path, sink: Sink) -> None:
        self.name = name
        self.log = log
        self.state = State.STARTING
        self.exit_code: int | None = None
        self.started_at = self.ended_at = self.due_at = 0.0
        self.stepped_at: float | None = None
        self.step: int | None = None
        self.restarts = 0
        self.last_failure: tuple[int, int] | None = None
        self.tail: collections.deque[str] = collections.deque(maxlen=_LINES_KEPT)
        self._steps: collections.deque[tuple[float, int]] = collections.deque()
        self._arguments = arguments
        self._environment = environment
        self._sink = sink
        self._stopping = False
        self._control: socket.socket | None = None
        self._words = ""
        self._reader: threading.Thread | None = None

    def start(self, starter: Spawner) -> None:
        """Starts it, for the first time or again."""
        self.state = State.STARTING
        self.exit_code = self.stepped_at = None
        self._stopping = False
        self._words = ""
        self._steps.clear()
        reading, writing = os.pipe()
        self._control = starter.start(self._arguments, self._environment, writing)
        os.close(writing)
        self._control.setblocking(False)
        self._reader = threading.Thread(target=self._read, args=(os.fdopen(reading, "rb"),), daemon=True)
        self._reader.start()
        self.started_at = time.monotonic()

    def start_again_at(self, due: float) -> None:
        """Takes note that it is to be started again; it has ended."""
        if self.exit_code is not None and not self._stopping:
            self.last_failure = (self.exit_code, self.step or 0)
        self.restarts += 1
        self.due_at = due
        self.state = State.RESTARTING
        self._control = None

    def poll(self) -> bool:
        """Looks whether it has ended.

        Returns:
            True when that is new.
        """
        if self.state.ended or self._control is None or not self._guard_has_ended(self._control):
            return False
        assert self._reader is not None
        self._reader.join(_PIPE_SECONDS)
        code = self._said(ENDED)
        # A guard that does not say how its task ended was killed, and with it the task.
        self.exit_code = 128 + signal.SIGKILL if code is None else code
        self.ended_at = time.monotonic()
        self.state = State.STOPPED if self._stopping else State.FAILED if self.exit_code else State.DONE
        return True

    def _guard_has_ended(self, control: socket.socket) -> bool:
        """Takes note of what it has said meanwhile."""
        try:
            while data := control.recv(_BUFFER):
                self._words += data.decode()
        except BlockingIOError:
            return False
        except ConnectionResetError:  # killed before it read what we told it
            pass
        control.close()
        return True

    def _said(self, word: str) -> int | None:
        """The number that the guard said with a word."""
        found = re.search(rf"{word} (\d+)\n", self._words)
        return int(found[1]) if found else None

    @property
    def pid(self) -> int | None:
        """Of the process itself; None where it is not known yet."""
        return self._said(STARTED)

    @property
    def was_told(self) -> bool:
        """Whether it ended last since it was told to, by others that train in step with it for one, and made no step since."""
        if self.exit_code is None and self.stepped_at is None and self.last_failure is not None:
            return self.last_failure[0] == EXIT_CODE
        return self.exit_code == EXIT_CODE

    def reached(self, step: int) -> None:
        """Takes note of a global step that it reported."""
        if step == self.step and self.stepped_at is not None:
            return
        now = time.monotonic()
        self.step = step
        self.stepped_at = now
        if not self.state.ended:
            self.state = State.TRAINING
        self._steps.append((now, step))
        while len(self._steps) > 2 and now - self._steps[0][0] > _RATE_SECONDS:
            self._steps.popleft()

    @property
    def steps_per_second(self) -> float | None:
        """Of the global step, lately; None while that cannot be told."""
        if len(self._steps) < 2 or self.state.ended:
            return None
        (start, first), (end, last) = self._steps[0], self._steps[-1]
        return (last - first) / (max(end, time.monotonic() - _LATE_SECONDS) - start)

    def terminate(self) -> None:
        """Asks it to end."""
        if self._control is None:  # not started yet, or to be started again
            self.state = State.STOPPED
        elif not self.state.ended:
            self._stopping = True
            with contextlib.suppress(OSError):
                self._control.send(TERMINATE)

    def kill(self) -> None:
        """Lets its guard end it and whatever it started, at once."""
        if self._control is not None and not self.state.ended:
            self._stopping = True
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_WR)

    def wait(self, seconds: float) -> bool:
        """Waits for its end.

        Returns:
            False when it did not come.
        """
        end = time.monotonic() + seconds
        while self._control is not None and not self.state.ended and (left := end - time.monotonic()) > 0:
            select.select([self._control], [], [], left)
            self.poll()
        return self._control is None or self.state.ended

    def _read(self, output: IO[bytes]) -> None:
        with output, contextlib.closing(Log(self.log, lambda line: self._sink("launch", line))) as log:
            log.append(f"--- {self.name}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
            for line in output:
                log.append(line)
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                self.tail.append(text)
                self._sink(str(self.name), text)


def kill_all(tasks: Sequence[Task], say: Sink) -> None:
    """Lets the guards end tasks and whatever they started, and waits for that.

    Args:
        tasks: to end; those that have ended stay as they are.
        say: is told who does not.
    """
    for task in tasks:
        task.kill()
    for task in tasks:
        if not task.wait(_KILL_SECONDS):
            say("launch", f"{task.name} does not end even by SIGKILL; look at process {task.pid} and those below it")
