"""``python -m estimator_bridge.launcher.processes.guard ARGUMENTS...``: runs ``python ARGUMENTS...``, none of which outlives the launcher.

Standard input is one end of a socket pair whose other end only the launcher holds. When that closes, because the launcher closed it or
was killed, the task ends with all processes that it started. A byte on it sends SIGTERM to the task's process group. The guard answers
on it with the task's process number, and at the end with an exit code as a shell has it: 128 plus the number of a signal.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

TERMINATE = b"T"
STARTED, ENDED = "started", "ended"  # messages of a guard, each with a number
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_TRIES, _PAUSE_SECONDS = 100, 0.02


def main(arguments: Sequence[str]) -> None:
    """Guards ``python ARGUMENTS...`` until it ends.

    Args:
        arguments: Command line of the task, without Python.
    """
    control = socket.socket(fileno=os.dup(0))
    become_guard()
    guard = os.getpid()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: become_task(guard),  # noqa: PLW1509 -- no thread runs yet
    )
    watch(process.pid, control)


def become_guard() -> None:
    """Makes this process adopt every orphan below it, so that it finds all processes of the task; called before the task starts."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def watch(pid: int, control: socket.socket) -> None:
    """Waits for a task to end, and ends what it leaves behind.

    Args:
        pid: Process number of the task, a child of this process and the leader of a process group.
        control: This process's end of the launcher's socket.
    """
    # Schedulers send SIGTERM to a whole group; it is not meant for the guard. If it were ignored before the fork, a task that is just
    # starting would miss it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _send(control, STARTED, pid)
    threading.Thread(target=_obey, args=(control, pid), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    end_descendants()
    _send(control, ENDED, code if code >= 0 else 128 - code)


def become_task(guard_pid: int) -> None:
    """Ties a task to its guard before it runs: the guard's death ends it, and SIGTERM has its default effect."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard_pid:
        os._exit(128 + signal.SIGKILL)


def _send(control: socket.socket, word: str, number: int) -> None:
    with contextlib.suppress(OSError):  # the launcher may be gone
        control.sendall(f"{word} {number}\n".encode())


def _obey(control: socket.socket, pid: int) -> None:
    with contextlib.suppress(OSError):
        while control.recv(1):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)
    end_descendants()


def end_descendants() -> None:
    """Kills all processes below this one, including those that they start meanwhile."""
    import psutil

    for _ in range(_TRIES):
        alive = 0
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE:
                    alive += 1
                    process.kill()
        if not alive:
            return
        time.sleep(_PAUSE_SECONDS)


def _prctl(option: int, value: int) -> None:
    """Calls prctl, which only Linux has; elsewhere the socket has to suffice."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
