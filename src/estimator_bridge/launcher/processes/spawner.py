"""How processes of tasks come to be: each by its own start of Python, or all forked from one that has imported what they need."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_END_SECONDS = 10.0


class Spawner:
    """Starts tasks, each under a guard (``cluster.guard``) and each from nothing; entered and left around their lives."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Spawner:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):  # who does not end has been told
                process.wait(_END_SECONDS)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], output: int) -> socket.socket:
        """Starts ``python ARGUMENTS...``.

        Args:
            arguments: "-m", a module's name, and its own.
            environment: of the task.
            output: descriptor for what it prints.

        Returns:
            Our end of the socket pair that its guard obeys and reports on.
        """
        control, theirs = socket.socketpair()
        with theirs:
            self._processes.append(_python("guard", arguments, environment, theirs, output))
        return control


class Forker(Spawner):
    """Forks tasks, each under a guard, from one process that has imported what they need (``cluster.forking``).

    Args:
        module: to import.
        environment: of that process.
        log: what it prints meanwhile is appended to it.
    """

    def __init__(self, module: str, environment: Mapping[str, str], log: Path) -> None:
        super().__init__()
        self._requests, theirs = socket.socketpair()
        with theirs, log.open("ab") as output:
            self._parent = _python("fork_server", [module], environment, theirs, output.fileno())

    def __exit__(self, *exception: object) -> None:
        self._requests.close()
        self._parent.kill()  # it may be importing still
        self._parent.wait(_END_SECONDS)
        super().__exit__(*exception)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], output: int) -> socket.socket:
        """As Spawner does, which does it should the process to fork from be gone."""
        control, theirs = socket.socketpair()
        with theirs, contextlib.suppress(OSError):
            socket.send_fds(self._requests, [b"F"], [theirs.fileno(), output])
            control.sendall(json.dumps([list(arguments), dict(environment)]).encode() + b"\n")
            return control
        control.close()
        return super().start(arguments, environment, output)


def _python(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], stdin: socket.socket, output: int
) -> subprocess.Popen[bytes]:
    """A module of ours, away from the terminal's Ctrl-C: what to do then is the launcher's to say."""
    return subprocess.Popen(
        [sys.executable, "-m", f"estimator_bridge.launcher.processes.{module}", *arguments],
        env=environment,
        stdin=stdin.fileno(),
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
