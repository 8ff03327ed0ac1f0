"""Takes Python's place in a test and lets the server run ``-m MODULE``, ``-c CODE`` or a file, with their arguments.

The server's socket is this file's path plus ".socket".
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path


def main() -> None:
    """Forwards SIGTERM to the server's copy and ends with the copy's exit code or signal."""
    request = {"arguments": sys.argv[1:], "environ": dict(os.environ), "cwd": str(Path.cwd()), "executable": __file__}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(f"{__file__}.socket")
        socket.send_fds(server, [b"."], [0, 1, 2])
        server.sendall(json.dumps(request).encode() + b"\n")
        signal.signal(signal.SIGTERM, lambda number, frame: server.sendall(b"T"))
        code = int(server.recv(16))
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


main()
