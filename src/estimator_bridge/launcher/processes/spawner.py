"""Spawners of tasks: each task is a new Python, or a fork of a process that has imported what all tasks need."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from estimator_bridge.cluster.tasks import TaskId

_END_SECONDS = 10.0


class Spawner:
    """Starts each task as a new Python under a guard; entered before the first task starts, and left after the last one has ended."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Spawner:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):  # kill_all has reported a task that does not end
                process.wait(_END_SECONDS)

    def start(self, task: TaskId, arguments: Sequence[str], environment: Mapping[str, str], output: int) -> socket.socket:
        """Starts ``python ARGUMENTS...``.

        Args:
            task: Task that the process runs.
            arguments: "-m", a module's name, and its own.
            environment: Environment of the task.
            output: File descriptor for its output.

        Returns:
            The launcher's end of the socket pair that the task's guard obeys and reports on.
        """
        control, theirs = socket.socketpair()
        with theirs:
            self._processes.append(_start_module("guard", arguments, environment, theirs, output))
        return control


class Forker(Spawner):
    """Forks each task, under a guard, from one fork server.

    Args:
        module: Module that the fork server imports.
        environment: Environment of the fork server.
        log: File to which the output of the import is appended.
    """

    def __init__(self, module: str, environment: Mapping[str, str], log: Path) -> None:
        super().__init__()
        self._requests, theirs = socket.socketpair()
        with theirs, log.open("ab") as output:
            self._server = _start_module("fork_server", [module], environment, theirs, output.fileno())

    def __exit__(self, *exception: object) -> None:
        self._requests.close()
        self._server.kill()  # it may still be importing
        self._server.wait(_END_SECONDS)
        super().__exit__(*exception)

    def start(self, task: TaskId, arguments: Sequence[str], environment: Mapping[str, str], output: int) -> socket.socket:
        """Forks the task, or starts it as ``Spawner`` does if the fork server is gone."""
        control, theirs = socket.socketpair()
        with theirs, contextlib.suppress(OSError):
            socket.send_fds(self._requests, [b"F"], [theirs.fileno(), output])
            control.sendall(json.dumps([list(arguments), dict(environment)]).encode() + b"\n")
            return control
        control.close()
        return super().start(task, arguments, environment, output)


def _start_module(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], stdin: socket.socket, output: int
) -> subprocess.Popen[bytes]:
    """Starts a module of this folder in a new session: the launcher, not the terminal, decides what Ctrl-C does."""
    return subprocess.Popen(
        [sys.executable, "-m", f"estimator_bridge.launcher.processes.{module}", *arguments],
        env=environment,
        stdin=stdin.fileno(),
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
