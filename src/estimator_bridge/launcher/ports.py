"""Ports of this machine for servers that are about to start."""

from __future__ import annotations

import contextlib
import random
import socket

from estimator_bridge.errors import BridgeError

_PORTS = range(20000, 32768)  # Linux gives those above to outgoing connections, which could take one before its server does


def free_ports(count: int) -> list[int]:
    """Returns ports that nothing uses on any address of this machine.

    TensorFlow's server refuses to share a port, so no port can be reserved until it starts. A task that finds its port taken has to be
    started again.

    Args:
        count: Number of ports, all different.

    Raises:
        BridgeError: Fewer ports are free.

    Example:
        >>> len(set(free_ports(3)))
        3
    """
    with contextlib.ExitStack() as held:
        found: list[int] = []
        for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):  # processes may have the same seed
            if len(found) == count:
                break
            with contextlib.suppress(OSError):
                held.enter_context(_bind(port))
                found.append(port)
    if len(found) < count:
        raise BridgeError(
            "Too few ports of this machine are free.",
            expected=f"{count} free ports from {_PORTS.start} to {_PORTS[-1]}",
            received=len(found),
            fix="End processes that use ports in this range, or start fewer tasks.",
        )
    return found


def is_free(port: int) -> bool:
    """Returns True if a server that starts now can have the port.

    Example:
        >>> with socket.create_server(("", 0)) as server:
        ...     is_free(server.getsockname()[1])
        False
    """
    with contextlib.suppress(OSError):
        _bind(port, reuse=True).close()
        return True
    return False


def find_listener(port: int) -> str | None:
    """Returns the process that listens at a port, or None if the system hides it, e.g. because another user owns it.

    Example:
        >>> import os
        >>> with socket.create_server(("", 0)) as server:
        ...     find_listener(server.getsockname()[1]).startswith(f"process {os.getpid()}, ")
        True
    """
    import psutil

    with contextlib.suppress(psutil.Error):
        for one in psutil.net_connections("tcp"):
            if one.pid and one.status == psutil.CONN_LISTEN and one.laddr[1:] == (port,):
                return f"process {one.pid}, {psutil.Process(one.pid).name()}"
    return None


def _bind(port: int, reuse: bool = False) -> socket.socket:
    """Binds a port on all addresses, as TensorFlow's server does.

    Args:
        port: TCP port.
        reuse: True if to bind while connections of a server that has ended still linger, as TensorFlow does.
    """
    own = socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET)
    try:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        if own.family == socket.AF_INET6:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        own.bind(("", port))
    except OSError:
        own.close()
        raise
    return own
