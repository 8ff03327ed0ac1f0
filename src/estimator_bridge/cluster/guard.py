"""``python -m estimator_bridge.cluster.guard COMMAND...``: runs a task and sees to it that nothing of it outlives the launcher.

Standard input is a pipe that nobody writes to and only the launcher holds: when it closes, because the launcher wants it or was
killed, the task ends with all processes that it started. SIGTERM goes on to the task's process group. The exit code is the task's, or
128 and the number of the signal that ended it, as a shell says.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_TRIES, _PAUSE_SECONDS = 100, 0.02


def main(command: Sequence[str]) -> int:
    """Runs the command to its end.

    Args:
        command: of the task.

    Returns:
        The exit code.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what loses its parent becomes our child, and is found
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until there is somebody to hand it to
    own = os.getpid()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: _die_with(own),  # noqa: PLW1509 -- no thread runs yet
    )

    def hand_on(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    signal.signal(signal.SIGTERM, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_launcher, daemon=True).start()
    code = process.wait()
    end_descendants()
    return code if code >= 0 else 128 - code


def _end_with_launcher() -> None:
    while os.read(0, 1):
        pass
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


def _die_with(parent: int) -> None:
    """In the task, before it runs: when the guard itself is killed, so is the task."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    """Linux alone has it; elsewhere the pipe has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
