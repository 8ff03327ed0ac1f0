"""A server that other machines cannot reach: TensorFlow's listens on every network interface, whatever address it is given."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import stat
import sys
from pathlib import Path

_logger = logging.getLogger(__name__)


def keep_to_loopback(port: int) -> bool:
    """Restricts this process's listening sockets of a port to connections from this machine.

    Args:
        port: of TCP.

    Returns:
        False where the system does not allow it: it takes Linux 5.7 or newer.

    Example:
        >>> with socket.create_server(("", 0)) as server:
        ...     kept = keep_to_loopback(server.getsockname()[1])
    """
    kept = False
    with contextlib.suppress(OSError, AttributeError):
        for number in filter(_is_socket, [int(file.name) for file in Path("/proc/self/fd").iterdir()]):
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as one:
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and one.getsockname()[1] == port:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
                    kept = True
    return kept


def keep_to_loopback_or_warn(port: int) -> None:
    """Calls ``keep_to_loopback``, and logs a warning if the system does not allow it.

    Args:
        port: TCP port of a server of this process.
    """
    if not keep_to_loopback(port):
        _logger.warning("other machines can reach the server at port %d: %s cannot prevent it", port, sys.platform)


def _is_socket(number: int) -> bool:
    """Of anything else no socket object can be made, and its copy would stay open."""
    with contextlib.suppress(OSError):
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    return False
