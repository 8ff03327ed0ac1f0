"""Layouts that are refused before anything of them starts."""

from __future__ import annotations

from pathlib import Path

from estimator_bridge.cluster.layout import SERVERLESS, Layout, is_loopback
from estimator_bridge.errors import BridgeError


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
