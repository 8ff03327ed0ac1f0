"""Layouts that are refused before anything of them starts."""

from __future__ import annotations

import time
from pathlib import Path

from estimator_bridge.cluster.tasks import SERVERLESS
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.layout import Layout, is_loopback
from estimator_bridge.launcher.ports import is_free, listener

_END_SECONDS = 5.0  # for a task whose launcher was killed a moment ago
_LOOK_SECONDS = 0.1


def check_network(layout: Layout, trusted: bool) -> None:
    """Refuses servers that others can reach, unless the user said that they may.

    Args:
        layout: of the cluster.
        trusted: the user said so.

    Raises:
        BridgeError: for an address that is not of the loopback interface.
    """
    public = [f"{task} at {address}" for task, address in layout.addresses.items() if not is_loopback(address)]
    if public and not trusted:
        raise BridgeError(
            "Servers of this cluster can be reached over the network.",
            expected="addresses of the loopback interface, 127.0.0.1 for one",
            received=", ".join(public),
            fix="TensorFlow's servers ask for no password and execute what they are sent, code included. Where only people whom "
            "you trust reach these machines, add --trusted-network.",
        )


def check_evaluator(layout: Layout, rendezvous: Path | None) -> None:
    """Refuses an evaluator that could not learn that training has ended: on other machines a chief alone starts no server to ask.

    Args:
        layout: of the cluster.
        rendezvous: folder that the launchers share, if any.

    Raises:
        BridgeError: without such a folder.
    """
    if rendezvous is None and len(layout.addresses) == 1 and any(task.job in SERVERLESS for task in layout.tf_configs):
        raise BridgeError(
            "The evaluator would never learn that training has ended: a chief alone starts no server, which could be asked.",
            expected="--rendezvous DIR, a folder that all machines share",
            fix="Choose a new one for each training, beside model_dir for example.",
        )


def check_ports(layout: Layout) -> None:
    """Refuses a task of this machine whose port somebody else has: its server could not start, and the others would meet that one.

    Args:
        layout: of the cluster.

    Raises:
        BridgeError: for a port that is taken.
    """
    if len(layout.addresses) == 1:  # a chief alone starts no server
        return
    for task in layout.addresses.keys() & layout.tf_configs.keys():
        address = layout.addresses[task]
        port = int(address.rpartition(":")[2])
        deadline = time.monotonic() + _END_SECONDS
        while not (free := is_free(port)) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        if not free:
            raise BridgeError(
                f"{task} cannot serve at {address}: the port is taken.",
                expected="a port of this machine at which nobody listens",
                received=listener(port) or "a process that the system does not name to this user",
                fix="End that process, or give the task another port, the same in the cluster of every task.",
            )
