"""``python -m estimator_bridge.launcher.processes.guard ARGUMENTS...``: runs ``python ARGUMENTS...`` and lets nothing of it outlive the launcher.

Standard input is one end of a socket pair whose other end only the launcher holds. When that closes, because the launcher wants it or
was killed, the task ends with all processes that it started. A byte on it is SIGTERM for the task's process group. The guard says on it
who the task is and how it ended, with an exit code as a shell has it: 128 and the number of the signal that ended it.
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
STARTED, ENDED = "started", "ended"  # what a guard says, each with a number
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_TRIES, _PAUSE_SECONDS = 100, 0.02


def main(arguments: Sequence[str]) -> None:
    """Guards ``python ARGUMENTS...`` to its end.

    Args:
        arguments: of the task's command line.
    """
    control = socket.socket(fileno=os.dup(0))
    become_guard()
    own = os.getpid()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: become_task(own),  # noqa: PLW1509 -- no thread runs yet
    )
    watch(process.pid, control)


def become_guard() -> None:
    """Before the task starts: all that it starts can be found."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what loses its parent becomes our child


def watch(pid: int, control: socket.socket) -> None:
    """Stays with a task to its end, and ends what it leaves.

    Args:
        pid: of our child, the leader of a process group.
        control: our end of the launcher's socket.
    """
    # SIGTERM to a whole group, as schedulers send it, is not for us. Ignored before the fork, it would be lost to a task that is just starting.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _say(control, STARTED, pid)
    threading.Thread(target=_obey, args=(control, pid), daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    end_descendants()
    _say(control, ENDED, code if code >= 0 else 128 - code)


def become_task(guard_pid: int) -> None:
    """In the task, before it runs: its guard's death is its own, and SIGTERM what it was."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard_pid:
        os._exit(128 + signal.SIGKILL)


def _say(control: socket.socket, word: str, number: int) -> None:
    with contextlib.suppress(OSError):  # the launcher may be gone
        control.sendall(f"{word} {number}\n".encode())


def _obey(control: socket.socket, pid: int) -> None:
    with contextlib.suppress(OSError):
        while control.recv(1):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)
    end_descendants()


def end_descendants() -> None:
    """Kills all processes below this one, those that they start meanwhile included."""
    import psutil

    for _ in range(_TRIES):
        left = psutil.Process().children(recursive=True)
        alive = 0
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE:
                    alive += 1
                    process.kill()
        if not alive:
            return
        time.sleep(_PAUSE_SECONDS)


def _prctl(option: int, value: int) -> None:
    """Linux alone has it; elsewhere the socket has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
