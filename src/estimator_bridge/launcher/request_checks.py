"""Checks that refuse a layout before any task of it starts."""

import time
from pathlib import Path

from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import Layout, is_loopback
from estimator_bridge.launcher.ports import find_listener, is_free

_END_SECONDS = 5.0  # for a task whose launcher was killed a moment ago
_LOOK_SECONDS = 0.1


def check_network(layout: Layout, is_trusted: bool) -> None:
    """Refuses servers that other machines can reach, unless the user allows them.

    Args:
        layout: Cluster layout.
        is_trusted: True if the user gave --trusted-network.

    Raises:
        BridgeError: An address is not on the loopback interface.
    """
    public = [f"{task} at {address}" for task, address in layout.addresses.items() if not is_loopback(address)]
    if public and not is_trusted:
        raise BridgeError(
            "Servers of this cluster can be reached over the network.",
            expected="addresses of the loopback interface, e.g. 127.0.0.1",
            received=", ".join(public),
            fix="TensorFlow's servers ask for no password and execute what they are sent, including code. If only people whom you trust "
            "reach these machines, add --trusted-network.",
        )


def check_evaluator(layout: Layout, rendezvous: Path | None) -> None:
    """Refuses an evaluator that could not learn that training has ended: a chief without other tasks starts no server to ask.

    Args:
        layout: Cluster layout.
        rendezvous: Folder that the launchers share, if any.

    Raises:
        BridgeError: The folder is missing.
    """
    if rendezvous is None and not layout.has_servers and any(not task.serves for task in layout.tf_configs):
        raise BridgeError(
            "The evaluator would never learn that training has ended: a chief without other tasks starts no server to ask.",
            expected="--rendezvous DIR, a folder that all machines share",
            fix="Choose a new folder for each training, e.g. beside model_dir.",
        )


def check_ports(layout: Layout) -> None:
    """Refuses a task of this machine whose port is taken: its server could not start, and the others would connect to a wrong process.

    Args:
        layout: Cluster layout.

    Raises:
        BridgeError: A port is taken.
    """
    for task in layout.addresses.keys() & layout.tf_configs.keys() if layout.has_servers else ():
        address = layout.addresses[task]
        port = int(address.rpartition(":")[2])
        deadline = time.monotonic() + _END_SECONDS
        while not is_free(port):
            if time.monotonic() >= deadline:
                raise BridgeError(
                    f"{task} cannot serve at {address}: the port is taken.",
                    expected="a free port of this machine",
                    received=find_listener(port) or "a process that the system hides from this user",
                    fix="End that process, or give the task another port, the same in the cluster of every task.",
                )
            time.sleep(_LOOK_SECONDS)
