"""Ports of this machine for servers that start in a moment."""

from __future__ import annotations

import contextlib
import random
import socket

from estimator_bridge.errors import BridgeError

_PORTS = range(20000, 32768)  # Linux gives those above to outgoing connections, which could take one before its server does


def free_ports(count: int) -> list[int]:
    """Ports that nothing uses on any address of this machine.

    TensorFlow's server refuses to share a port, so none can be kept until it starts: who finds one taken has to be started again.

    Args:
        count: how many, all different.

    Returns:
        Port numbers.

    Raises:
        BridgeError: when there are not as many.

    Example:
        >>> len(set(free_ports(3)))
        3
    """
    with contextlib.ExitStack() as held:
        found: list[int] = []
        for port in random.sample(_PORTS, len(_PORTS)):
            if len(found) == count:
                break
            with contextlib.suppress(OSError):
                held.enter_context(_bound(port))
                found.append(port)
    if len(found) < count:
        raise BridgeError("Too few ports are free.", expected=f"{count} of {_PORTS.start} to {_PORTS[-1]}", received=len(found))
    return found


def is_free(port: int) -> bool:
    """Whether a server that starts now can have a port.

    Example:
        >>> with socket.create_server(("", 0)) as server:
        ...     is_free(server.getsockname()[1])
        False
    """
    with contextlib.suppress(OSError):
        _bound(port, again=True).close()
        return True
    return False


def listener(port: int) -> str | None:
    """The process that listens at a port; None where the system does not tell, as of another user's.

    Example:
        >>> import os
        >>> with socket.create_server(("", 0)) as server:
        ...     listener(server.getsockname()[1]).startswith(f"process {os.getpid()}, ")
        True
    """
    import psutil

    with contextlib.suppress(psutil.Error):
        for one in psutil.net_connections("tcp"):
            if one.pid and one.status == psutil.CONN_LISTEN and one.laddr[1:] == (port,):
                return f"process {one.pid}, {psutil.Process(one.pid).name()}"
    return None


def _bound(port: int, again: bool = False) -> socket.socket:
    """On all addresses, as TensorFlow's server binds; again: though connections of a server that has ended linger, as it does."""
    own = socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET)
    try:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(again))
        if own.family == socket.AF_INET6:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        own.bind(("", port))
    except OSError:
        own.close()
        raise
    return own
