"""One task of a cluster on this machine: its process, its log and its state."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from estimator_bridge.cluster.preemption import EXIT_CODE
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.processes.guard import ENDED, STARTED, TERMINATE
from estimator_bridge.launcher.processes.spawner import Spawner

Sink = Callable[[str, str], None]
"""Function that prints a line to the user; its arguments are the name of the line's task and the line."""

_LINES_KEPT = 200  # of the output, to say why a task failed
_RATE_SECONDS = 10.0  # time over which steps are counted
_LATE_SECONDS = 2.0  # a report comes each second; after a longer pause the rate falls
_BUFFER = 4096
_KILL_SECONDS = 10.0  # for a guard to end what is left
_PIPE_SECONDS = 2.0  # for the end of the output, once the process has ended


class State(enum.Enum):
    """The state of a task."""

    STARTING = "starting"
    READY = "ready"
    TRAINING = "training"
    RESTARTING = "restarting"
    """The task has ended, and will be started again in a moment."""
    DONE = "done"
    """The task has ended with exit code 0."""
    FAILED = "failed"
    """The task has ended with another exit code, or too early."""
    STOPPED = "stopped"
    """The task has ended because the launcher asked."""

    @property
    def has_ended(self) -> bool:
        """True if the task has no process any more."""
        return self in {State.DONE, State.FAILED, State.STOPPED}


class Task:
    """A process under a guard, so that it ends with the launcher, however that ends.

    Args:
        name: Task of the cluster.
        arguments: Arguments of Python: "-m", a module's name, and its own.
        environment: Environment of the process, including TF_CONFIG; every user can read a command line.
        log: File to which its output is appended.
        sink: Function that gets its output line by line, from a thread.

    Attributes:
        state: State of the task.
        exit_code: Exit code after its end.
        started_at: ``time.monotonic()`` of its start.
        ended_at: Time of its end.
        stepped_at: Time of its last new step since its start; None before the first.
        due_at: Time of its next start, while it waits for that.
        step: Global step that it reported last.
        restarts: Number of its restarts.
        last_failure: Exit code and global step of the last failure after which it was restarted.
        tail: Last lines of its output.
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
        self._is_stopping = False
        self._control: socket.socket | None = None
        self._messages = ""
        self._reader: threading.Thread | None = None

    def start(self, spawner: Spawner) -> None:
        """Starts the task, for the first time or again."""
        self.state = State.STARTING
        self.exit_code = self.stepped_at = None
        self._is_stopping = False
        self._messages = ""
        self._steps.clear()
        reading, writing = os.pipe()
        self._control = spawner.start(self.name, self._arguments, self._environment, writing)
        os.close(writing)
        self._control.setblocking(False)
        self._reader = threading.Thread(target=self._read, args=(os.fdopen(reading, "rb"),), daemon=True)
        self._reader.start()
        self.started_at = time.monotonic()

    def schedule_restart(self, due: float) -> None:
        """Records that the task, which has ended, will be started again at a time of ``time.monotonic()``."""
        if self.exit_code is not None and not self._is_stopping:
            self.last_failure = (self.exit_code, self.step or 0)
        self.restarts += 1
        self.due_at = due
        self.state = State.RESTARTING
        self._control = None

    def poll(self) -> bool:
        """Polls the task. Returns True the first time it is found to have ended."""
        if self.state.has_ended or self._control is None or not self._has_guard_ended(self._control):
            return False
        assert self._reader is not None
        self._reader.join(_PIPE_SECONDS)
        code = self._find_number(ENDED)
        # A guard that does not report the end of its task was killed, and its task with it.
        self.exit_code = 128 + signal.SIGKILL if code is None else code
        self.ended_at = time.monotonic()
        self.state = State.STOPPED if self._is_stopping else State.FAILED if self.exit_code else State.DONE
        return True

    def _has_guard_ended(self, control: socket.socket) -> bool:
        """Reads the messages of the guard. Returns True if it has closed its end."""
        try:
            while data := control.recv(_BUFFER):
                self._messages += data.decode()
        except BlockingIOError:
            return False
        except ConnectionResetError:  # killed before it read what it was sent
            pass
        control.close()
        return True

    def _find_number(self, word: str) -> int | None:
        """Returns the number that the guard sent with a word."""
        found = re.search(rf"{word} (\d+)\n", self._messages)
        return int(found[1]) if found else None

    @property
    def pid(self) -> int | None:
        """The number of the process, or None while it is unknown."""
        return self._find_number(STARTED)

    @property
    def was_preempted(self) -> bool:
        """True if the task ended last because it was asked to, e.g. by a task that trains in step, and made no step since."""
        if self.exit_code is None and self.stepped_at is None and self.last_failure is not None:
            return self.last_failure[0] == EXIT_CODE
        return self.exit_code == EXIT_CODE

    def record_step(self, step: int) -> None:
        """Records a global step that the task reported."""
        if step == self.step and self.stepped_at is not None:
            return
        now = time.monotonic()
        self.step = step
        self.stepped_at = now
        if not self.state.has_ended:
            self.state = State.TRAINING
        self._steps.append((now, step))
        while len(self._steps) > 2 and now - self._steps[0][0] > _RATE_SECONDS:
            self._steps.popleft()

    @property
    def steps_per_second(self) -> float | None:
        """The current rate of the global step, or None while it is unknown."""
        if len(self._steps) < 2 or self.state.has_ended:
            return None
        (start, first), (end, last) = self._steps[0], self._steps[-1]
        return (last - first) / (max(end, time.monotonic() - _LATE_SECONDS) - start)

    def terminate(self) -> None:
        """Sends SIGTERM to the task."""
        if self._control is None:  # not started yet, or waiting for its restart
            self.state = State.STOPPED
        else:
            self._stop(lambda control: control.send(TERMINATE))

    def kill(self) -> None:
        """Makes the guard kill the task and every process that it started."""
        self._stop(lambda control: control.shutdown(socket.SHUT_WR))

    def _stop(self, action: Callable[[socket.socket], object]) -> None:
        if self._control is not None and not self.state.has_ended:
            self._is_stopping = True
            with contextlib.suppress(OSError):
                action(self._control)

    def wait(self, seconds: float) -> bool:
        """Waits for the end of the task. Returns False if it still runs."""
        end = time.monotonic() + seconds
        while self._control is not None and not self.state.has_ended and (left := end - time.monotonic()) > 0:
            select.select([self._control], [], [], left)
            self.poll()
        return self._control is None or self.state.has_ended

    def _read(self, output: IO[bytes]) -> None:
        with output, contextlib.closing(Log(self.log, lambda line: self._sink("launch", line))) as log:
            log.append(f"--- {self.name}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
            for line in output:
                log.append(line)
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                self.tail.append(text)
                self._sink(str(self.name), text)


class Log:
    """The log file of a task, which takes lines while it can be written; the first failure is reported.

    A write may fail, because the task must not wait for a full disk.

    Args:
        path: Path of the file.
        say: Function that prints one line to the user.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._file: IO[bytes] | None = None
        self._has_failed = False

    def append(self, line: bytes) -> None:
        """Writes a line, so that others can read it at once."""
        with self._report_failure():
            if self._file is None:
                self._file = self._path.open("ab")
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        """Closes the file. A network's disk may report only now that it is full."""
        with self._report_failure():
            if self._file is not None:
                self._file.close()

    @contextlib.contextmanager
    def _report_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                self._say(f"{self._path} cannot be written: {error.strerror}; lines are printed here, but missing there")


def kill_all(tasks: Sequence[Task], say: Callable[[str], None]) -> None:
    """Kills tasks with every process that they started, and waits for their ends.

    Args:
        tasks: Tasks to end; those that have ended stay as they are.
        say: Function that prints one line to the user, here about a task that does not end.
    """
    for task in tasks:
        task.kill()
    for task in tasks:
        if not task.wait(_KILL_SECONDS):
            say(f"{task.name} does not end even after SIGKILL; check process {task.pid} and those below it")
