"""Servers that other machines cannot reach: TensorFlow's listens on every network interface, whatever address it is given."""

import contextlib
import logging
import os
import socket
import sys
from pathlib import Path

_logger = logging.getLogger(__name__)


def keep_to_loopback(port: int) -> bool:
    """Restricts this process's listening sockets of a port to connections from this machine.

    Args:
        port: TCP port.

    Returns:
        False if the system does not allow it; Linux 5.7 or newer is needed.

    Example:
        >>> with socket.create_server(("", 0)) as server:
        ...     is_restricted = keep_to_loopback(server.getsockname()[1])
    """
    is_restricted = False
    with contextlib.suppress(OSError, AttributeError):
        # A socket object of any other file cannot be made, and would leave its copy open.
        for file in filter(Path.is_socket, list(Path("/proc/self/fd").iterdir())):
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(file.name))) as one:
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and one.getsockname()[1] == port:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
                    is_restricted = True
    return is_restricted


def keep_to_loopback_or_warn(port: int) -> None:
    """Calls ``keep_to_loopback``, and logs a warning if the system does not allow it.

    Args:
        port: TCP port of a server of this process.
    """
    if not keep_to_loopback(port):
        _logger.warning("other machines can reach the server at port %d: %s cannot prevent it", port, sys.platform)
