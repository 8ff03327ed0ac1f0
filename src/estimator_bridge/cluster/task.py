"""One task of a cluster on this machine: its process, its log, and how it is doing."""

from __future__ import annotations

import collections
import contextlib
import enum
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from estimator_bridge.cluster.layout import TaskId

Sink = Callable[[str, str], None]
"""Gets whose line it is, and the line."""

_LINES_KEPT = 200  # of the output, to say why a task failed
_RATE_SECONDS = 10.0  # over which steps are counted
_LATE_SECONDS = 2.0  # a report comes each second; without one for longer, the rate falls
_PIPE_SECONDS = 2.0  # for the output's end, once the process has ended


class State(enum.Enum):
    """Of a task."""

    STARTING = "starting"
    READY = "ready"
    TRAINING = "training"
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
        command: to run.
        environment: for it, TF_CONFIG included; the command line of a process is for all to read.
        log: file that its output is appended to.
        sink: gets its output line by line, from a thread.

    Attributes:
        state: how it is doing.
        exit_code: once it has ended.
        ended_at: ``time.monotonic()`` of that.
        step: the global step that it reported last.
        restarts: how often it was started again.
        tail: its last lines.
    """

    def __init__(self, name: TaskId, command: Sequence[str], environment: Mapping[str, str], log: Path, sink: Sink) -> None:
        self.name = name
        self.log = log
        self.state = State.STARTING
        self.exit_code: int | None = None
        self.ended_at = 0.0
        self.step: int | None = None
        self.restarts = 0
        self.tail: collections.deque[str] = collections.deque(maxlen=_LINES_KEPT)
        self._steps: collections.deque[tuple[float, int]] = collections.deque()
        self._command = [sys.executable, "-m", "estimator_bridge.cluster.guard", *command]
        self._environment = dict(environment)
        self._sink = sink
        self._stopping = False
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """Of the guard; None before the start."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Starts it, away from the terminal's Ctrl-C: what to do then is the launcher's to say."""
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def poll(self) -> bool:
        """Looks whether it has ended.

        Returns:
            True when that is new.
        """
        if self.state.ended or self._process is None or (code := self._process.poll()) is None:
            return False
        assert self._reader is not None
        self._reader.join(_PIPE_SECONDS)
        self.exit_code = code if code >= 0 else 128 - code  # as its guard says it of the task
        self.ended_at = time.monotonic()
        self.state = State.STOPPED if self._stopping else State.DONE if code == 0 else State.FAILED
        return True

    def reached(self, step: int) -> None:
        """Takes note of a global step that it reported."""
        if step == self.step:
            return
        now = time.monotonic()
        self.step = step
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
        if self._process is not None and not self.state.ended:
            self._stopping = True
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Lets its guard end it and whatever it started, at once."""
        if self._process is not None and self._process.stdin is not None:
            self._stopping = True
            self._process.stdin.close()

    def wait(self, seconds: float) -> bool:
        """Waits for its end.

        Returns:
            False when it did not come.
        """
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            self.poll()
        return self._process is None or self.state.ended

    def _read(self, output: IO[bytes]) -> None:
        with output, self.log.open("ab") as log:
            log.write(f"--- {self.name}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
            for line in output:
                log.write(line)
                log.flush()
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                self.tail.append(text)
                self._sink(str(self.name), text)
