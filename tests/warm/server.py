"""A process that has imported TensorFlow and installed the legacy path, and that runs each client's program in a fork.

``python server.py SOCKET`` prints a line when it listens, and ends when its stdin ends. A client sends its standard streams and one
line of JSON, and receives an exit code. A process can fork safely until TensorFlow has run its first operation.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import types
from pathlib import Path
from typing import Any

from estimator_bridge import legacy

PATH = sys.path[1:]


def main(path: str) -> None:
    """Serves; each fork runs its client's program."""
    legacy.install()
    for module in ("cli.main", "modern.engine"):  # each fork would need a third of a second for these
        importlib.import_module(f"estimator_bridge.{module}")
    settled = {name: os.environ[name] for name in ("TF_USE_LEGACY_KERAS",) if name in os.environ}
    gc.collect()
    gc.freeze()
    request = serve(path)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"] | settled)
    sys.stdout.reconfigure(write_through="PYTHONUNBUFFERED" in os.environ)  # type: ignore[union-attr]
    sys.executable = request["executable"]
    execute(*request["arguments"])


def serve(path: str) -> Any:
    """Waits for clients; returns the request, only in forks."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.write(1, b"listening\n")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for the first forks
        while listener.fileno() in select.select([0, listener.fileno()], [], [])[0]:
            client, _ = listener.accept()
            with client:
                if not os.fork():
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    return copy_for(client)
    sys.exit()


def copy_for(client: socket.socket) -> Any:
    """Returns the request in a second fork; this process waits for it."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    request = json.loads(client.makefile().readline())
    child = os.fork()
    if not child:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    if child:
        mind(child, client)
    return request


def mind(child: int, client: socket.socket) -> None:
    """Sends the client the exit code of its fork; the fork receives SIGTERM from its client and ends with it."""

    def end_with_client() -> None:
        with contextlib.suppress(ProcessLookupError):  # the fork has ended
            while client.recv(1):
                os.kill(child, signal.SIGTERM)
            os.kill(child, signal.SIGKILL)

    threading.Thread(target=end_with_client, daemon=True).start()
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):  # the client was killed
        client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def execute(first: str, *rest: str) -> None:
    """Runs ``python -m MODULE ...``, ``python -c CODE ...`` or ``python FILE ...``."""
    starts = {"-m": str(Path.cwd()), "-c": ""}
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [starts.get(first, str(Path(first).parent)), *given, *PATH]
    sys.argv = [first, *rest[first in starts :]]
    if first == "-m":
        runpy._run_module_as_main(rest[0])  # type: ignore[attr-defined] # what Python itself calls
    elif first == "-c":
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
