"""Workers that ask each other, where one of them is not there; where all are, test_routes.py has them train."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tensorflow as tf

from estimator_bridge.cluster.loopback import keep_to_loopback
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.legacy.distribution.worker_exchange import allgather_text


def test_a_first_task_that_is_not_there_is_named() -> None:
    """A session would wait for it without end."""
    own, chief = (f"127.0.0.1:{port}" for port in free_ports(2))
    server = tf.distribute.Server({"chief": [chief], "worker": [own]}, "worker", 0)
    keep_to_loopback(int(own.rpartition(":")[2]))
    config = SimpleNamespace(
        cluster_spec=tf.train.ClusterSpec({"chief": [chief], "worker": [own]}),
        session_creation_timeout_secs=0.3,
        task_type="worker",
        task_id=0,
        master=server.target,
    )

    with pytest.raises(BridgeError, match=f"no answer from /job:chief/task:0 at {chief}"):
        allgather_text(config, own=1, number=2, text="mine")
