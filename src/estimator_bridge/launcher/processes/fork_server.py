"""``python -m estimator_bridge.launcher.processes.fork_server MODULE``: imports what all tasks need once, and forks each of them from there.

TensorFlow takes seconds of a core to import: a cluster of six on two cores waits for the sum. A process that has imported it and made
no session, server or eager context yet can be forked: neither gRPC nor CUDA nor a thread pool of TensorFlow's has been started (a GPU
is first looked for by the first of these, in the task), so that there is nothing that a fork would leave half behind.

multiprocessing's forkserver does not serve: its children know no guard, no process group of their own and no exit code of ``python -m``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Sequence

from estimator_bridge.launcher.processes.guard import become_guard, become_task, watch

FILES = 2  # that come with a request: the guard's end of the launcher's socket, and where the task's output goes


def main(module: str) -> None:
    """Serves until the launcher closes its end of standard input; in a task, runs the task.

    Args:
        module: to import first. Where that fails, tasks are forked without it, and each meets the error itself.
    """
    try:
        importlib.import_module(module)
    except Exception:  # noqa: BLE001 -- whatever it is, the tasks will meet it
        traceback.print_exc()
        # Half an import would spoil theirs. The new process has the same standard input, and imports what is there already.
        os.execv(sys.executable, [sys.executable, "-m", "estimator_bridge.launcher.processes.fork_server", "runpy"])
    requests = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 -- what tasks read
        os.dup2(nothing.fileno(), 0)
    gc.freeze()  # what is imported stays: looking through it in each task would copy its memory, and take a second at its end
    # Python warns where there are threads, and numpy's BLAS has idle ones, which it starts anew in a child.
    warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
    with requests:
        arguments = _serve(requests)
    if arguments:
        run_python(arguments)


def _serve(requests: socket.socket) -> Sequence[str]:
    """Forks a guard for each request, and that its task.

    Returns:
        In a task its arguments, so that none of this is left on its stack; here none, at the end.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guards that have ended leave no zombies
    while True:
        request, files, _, _ = socket.recv_fds(requests, 1, FILES)
        if not request:
            return ()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            return _guarded(socket.socket(fileno=files[0]), files[1])
        for file in files:
            os.close(file)


def _guarded(control: socket.socket, output: int) -> Sequence[str]:
    """Returns in the task alone, with its arguments; its guard ends here."""
    with control, control.makefile("rb", buffering=0) as request:
        for number in (1, 2):
            os.dup2(output, number)
        os.close(output)
        if not (line := request.readline()):  # the launcher is gone
            os._exit(1)
        arguments, environment = json.loads(line)
        become_guard()
        own = os.getpid()
        if pid := os.fork():
            with contextlib.suppress(OSError):  # the task may have ended
                os.setpgid(pid, pid)
            watch(pid, control)
            os._exit(0)
    # A group of its own, for signals, in the session of all: Linux shares a core among sessions first (sched_autogroup_enabled), and
    # tasks that answer each other within microseconds would be put off for those of other sessions.
    os.setpgid(0, 0)
    become_task(own)
    os.environ.update(environment)  # what the import has set stays
    return list(arguments)


def run_python(arguments: Sequence[str]) -> None:
    """Does what ``python -m MODULE ARGUMENTS...`` does.

    Args:
        arguments: "-m", the module's name, and its own.
    """
    sys.argv = list(arguments[1:])
    runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1])
