"""Who is in a cluster and where: tasks, their addresses, and the TF_CONFIG of each."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import socket
from collections.abc import Mapping

from estimator_bridge.compat.config.cluster.tf_config import EXPECTED, check
from estimator_bridge.compat.config.positions import Document
from estimator_bridge.compat.config.tables.tf_config import addresses
from estimator_bridge.errors import BridgeError

TRAINERS = ("chief", "worker")  # their end is the end of the training
_SERVERLESS = frozenset({"evaluator"})  # reads checkpoints, and serves nothing
_HOST = "127.0.0.1"
_PORTS = range(
    20000, 32768
)  # below those that Linux gives to outgoing connections, which could take one before its server does


@dataclasses.dataclass(frozen=True, order=True)
class TaskId:
    """A task of a cluster, as TF_CONFIG names it.

    Attributes:
        job: chief, worker, ps or evaluator.
        index: from 0 in each job.
    """

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job} {self.index}"


@dataclasses.dataclass(frozen=True)
class Layout:
    """A cluster on this machine.

    Attributes:
        addresses: of every task that serves; an evaluator is no part of Estimator's cluster.
        tasks: all that are to be started, servers first.

    Example:
        >>> layout = Layout({TaskId("chief", 0): "127.0.0.1:20000"}, (TaskId("chief", 0),))
        >>> layout.tf_config(TaskId("chief", 0))
        '{"cluster": {"chief": ["127.0.0.1:20000"]}, "task": {"type": "chief", "index": 0}}'
    """

    addresses: Mapping[TaskId, str]
    tasks: tuple[TaskId, ...]

    @property
    def leader(self) -> TaskId:
        """Whose end the others follow: the chief, or the first worker where there is none."""
        return min(task for task in self.tasks if task.job in TRAINERS)

    def tf_config(self, task: TaskId) -> str:
        """The TF_CONFIG of a task, as JSON."""
        cluster: dict[str, list[str]] = {}
        for member, address in self.addresses.items():
            cluster.setdefault(member.job, []).append(address)
        return json.dumps({"cluster": cluster, "task": {"type": task.job, "index": task.index}})


def local_layout(counts: Mapping[str, int]) -> Layout:
    """A cluster on this machine's loopback interface, on ports that are free now.

    Args:
        counts: tasks of each job.

    Returns:
        The layout.

    Raises:
        BridgeError: when nobody trains.

    Example:
        >>> [str(task) for task in local_layout({"chief": 1, "worker": 1, "ps": 1, "evaluator": 1}).tasks]
        ['ps 0', 'worker 0', 'chief 0', 'evaluator 0']
    """
    if not any(counts.get(job, 0) for job in TRAINERS):
        raise BridgeError("No task would train.", expected="a chief or a worker", received=dict(counts), fix="Add --chief 1.")
    jobs = ("ps", "worker", "chief", "evaluator")
    tasks = tuple(TaskId(job, index) for job in jobs for index in range(counts.get(job, 0)))
    servers = [task for task in tasks if task.job not in _SERVERLESS]
    ports = free_ports(len(servers))
    return Layout({task: f"{_HOST}:{port}" for task, port in zip(servers, ports, strict=True)}, tasks)


def servers_of(tf_config: Document) -> dict[TaskId, str]:
    """Who serves in the cluster of a TF_CONFIG, and where.

    Args:
        tf_config: with or without a task.

    Returns:
        Task -> address.

    Raises:
        BridgeError: for a wrong cluster, or none.

    Example:
        >>> from estimator_bridge.compat.config.positions import read_object
        >>> servers_of(read_object('{"cluster": {"chief": ["a:1"], "evaluator": ["a:2"]}}', "job.json"))
        {TaskId(job='chief', index=0): 'a:1'}
    """
    cluster = tf_config.value.get("cluster")
    if not cluster:
        raise BridgeError(f"{tf_config.source} names no cluster.", expected=EXPECTED, received=dict(tf_config.value))
    task = tf_config.value.get("task") or {"type": next(iter(cluster)), "index": 0}
    check(dataclasses.replace(tf_config, value={**tf_config.value, "task": task}), chief_needed=False)
    return {
        TaskId(job, index): address
        for job, tasks in cluster.items()
        if job not in _SERVERLESS
        for index, address in enumerate(addresses(tasks))
    }


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


def _bound(port: int) -> socket.socket:
    """On all addresses, as TensorFlow's server binds."""
    own = socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET)
    try:
        if own.family == socket.AF_INET6:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        own.bind(("", port))
    except OSError:
        own.close()
        raise
    return own
