"""``python -m estimator_bridge.launcher.processes.fork_server MODULE``: imports once what all tasks need, and forks each task from there.

TensorFlow takes seconds of a core to import: a cluster of six on two cores waits for the sum. A process that has imported it, and has
made no session, server or eager context yet, can be forked. gRPC, CUDA and TensorFlow's thread pools start only with the first of these,
in the task, so a fork leaves nothing half behind.

multiprocessing's forkserver is no substitute: its children have no guard, no process group of their own and no exit code of
``python -m``.
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

FILES = 2  # file descriptors of a request: the guard's end of the launcher's socket, and the task's output


def main(module: str) -> None:
    """Serves until the launcher closes its end of standard input; in a task, runs the task.

    Args:
        module: Module to import first. If the import fails, tasks are forked without it, and each meets the error itself.
    """
    try:
        importlib.import_module(module)
    except Exception:  # noqa: BLE001 -- the tasks will meet it, whatever it is
        traceback.print_exc()
        # Half an import would spoil theirs. The new process has the same standard input, and imports only what it has already.
        os.execv(sys.executable, [sys.executable, "-m", "estimator_bridge.launcher.processes.fork_server", "runpy"])
    requests = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 -- standard input of the tasks
        os.dup2(nothing.fileno(), 0)
    gc.freeze()  # imported objects stay: a collection in each task would copy their memory, and take a second at its end
    # Python warns about a fork beside threads, and numpy's BLAS has idle ones, which it starts anew in a child.
    warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
    with requests:
        arguments = _serve(requests)
    if arguments:
        run_python(arguments)


def _serve(requests: socket.socket) -> Sequence[str]:
    """Forks a guard for each request, which forks its task.

    Returns:
        In a task its arguments, so that nothing of this module stays on its stack; in this process nothing, at the end.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guards that have ended leave no zombies
    while True:
        request, files, _, _ = socket.recv_fds(requests, 1, FILES)
        if not request:
            return ()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            requests.close()
            return _fork_task(socket.socket(fileno=files[0]), files[1])
        for file in files:
            os.close(file)


def _fork_task(control: socket.socket, output: int) -> Sequence[str]:
    """Becomes a guard and forks its task. Returns only in the task, with its arguments; the guard ends here."""
    with control, control.makefile("rb", buffering=0) as request:
        for number in (1, 2):
            os.dup2(output, number)
        os.close(output)
        if not (line := request.readline()):  # the launcher is gone
            os._exit(1)
        arguments, environment = json.loads(line)
        become_guard()
        guard = os.getpid()
        if pid := os.fork():
            with contextlib.suppress(OSError):  # the task may have ended
                os.setpgid(pid, pid)
            watch(pid, control)
            os._exit(0)
    # The task gets a process group of its own, for signals, in the session of all tasks. Linux divides a core among sessions first
    # (sched_autogroup_enabled), so tasks that answer each other within microseconds would wait for those of other sessions.
    os.setpgid(0, 0)
    become_task(guard)
    os.environ.update(environment)  # keeps what the import has set
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
