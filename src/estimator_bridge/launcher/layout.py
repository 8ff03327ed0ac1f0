"""Who is in a cluster and where: tasks, their addresses, and the TF_CONFIG of each."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence

from estimator_bridge.cluster.tasks import SERVERLESS, TRAINERS, TaskId
from estimator_bridge.compat.config.cluster.tf_config import EXPECTED, check
from estimator_bridge.compat.config.tables.tf_config import addresses
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.runtime.json_positions import Document

_HOST = "127.0.0.1"


@dataclasses.dataclass(frozen=True)
class Layout:
    """A cluster, and which of its tasks run on this machine.

    Attributes:
        addresses: of every task that serves; an evaluator is no part of Estimator's cluster.
        tf_configs: task that is to run here -> its TF_CONFIG, as JSON; servers first.
    """

    addresses: Mapping[TaskId, str]
    tf_configs: Mapping[TaskId, str]

    @property
    def is_local(self) -> bool:
        """Whether nobody outside this machine is in it."""
        return all(is_loopback(address) for address in self.addresses.values())

    @property
    def is_whole(self) -> bool:
        """Whether one launcher has all that serve."""
        return self.addresses.keys() <= self.tf_configs.keys()


def laid_out(addresses: Mapping[TaskId, str], tasks: Sequence[TaskId]) -> Layout:
    """A cluster whose tasks all run here.

    Args:
        addresses: of those that serve.
        tasks: all of them.

    Returns:
        The layout.

    Example:
        >>> chief = TaskId("chief", 0)
        >>> laid_out({chief: "127.0.0.1:20000"}, [chief]).tf_configs[chief]
        '{"cluster": {"chief": ["127.0.0.1:20000"]}, "task": {"type": "chief", "index": 0}}'
    """
    cluster: dict[str, list[str]] = {}
    for member, address in addresses.items():
        cluster.setdefault(member.job, []).append(address)
    made = {task: json.dumps({"cluster": cluster, "task": {"type": task.job, "index": task.index}}) for task in tasks}
    return Layout(addresses, made)


def local_layout(counts: Mapping[str, int]) -> Layout:
    """A cluster on this machine's loopback interface, on ports that are free now.

    Args:
        counts: tasks of each job.

    Returns:
        The layout.

    Raises:
        BridgeError: when nobody trains.

    Example:
        >>> [str(task) for task in local_layout({"chief": 1, "worker": 1, "ps": 1, "evaluator": 1}).tf_configs]
        ['ps 0', 'worker 0', 'chief 0', 'evaluator 0']
    """
    check_trained(counts)
    jobs = ("ps", "worker", "chief", "evaluator")
    tasks = [TaskId(job, index) for job in jobs for index in range(counts.get(job, 0))]
    servers = [task for task in tasks if task.job not in SERVERLESS]
    ports = free_ports(len(servers))
    return laid_out({task: f"{_HOST}:{port}" for task, port in zip(servers, ports, strict=True)}, tasks)


def check_trained(counts: Mapping[str, int]) -> None:
    """Refuses a cluster in which nobody trains.

    Args:
        counts: tasks of each job.

    Raises:
        BridgeError: for one without chief and workers.
    """
    if not any(counts.get(job, 0) for job in TRAINERS):
        raise BridgeError(
            "No task would train.",
            expected="a chief or a worker",
            received=dict(counts),
            fix="Add a chief: --chief 1, or in TF_CONFIG.",
        )


def hosted_layout(hosts: Sequence[str], counts: Mapping[str, int], task: str) -> Layout:
    """One task of a cluster on several machines, of which each gets the same list.

    Args:
        hosts: ``host:port`` of the chief, then of the workers, then of the parameter servers.
        counts: tasks of each job.
        task: that is to run here, as ``worker:1``.

    Returns:
        The layout, with the one task.

    Raises:
        BridgeError: where hosts and tasks are not as many, or there is no such task.

    Example:
        >>> layout = hosted_layout(["a:2222", "b:2222"], {"chief": 1, "ps": 1}, "ps:0")
        >>> layout.tf_configs[TaskId("ps", 0)]
        '{"cluster": {"chief": ["a:2222"], "ps": ["b:2222"]}, "task": {"type": "ps", "index": 0}}'
    """
    servers = [TaskId(job, index) for job in ("chief", "worker", "ps") for index in range(counts.get(job, 0))]
    if {len(hosts), len(set(hosts))} != {len(servers)} or not all(map(_is_address, hosts)):
        raise BridgeError(
            "--hosts does not give each task its address.",
            expected=f"{len(servers)} times host:port, for {', '.join(map(str, servers))}; no two the same",
            received=",".join(hosts),
        )
    named = {f"{each.job}:{each.index}": each for each in (*servers, *(TaskId(job, 0) for job in SERVERLESS))}
    if task not in named:
        raise BridgeError("There is no such task.", expected=f"--task and one of {', '.join(named)}", received=task)
    return laid_out(dict(zip(servers, hosts, strict=True)), [named[task]])


def _is_address(host: str) -> bool:
    match = re.fullmatch(r"[^\s/]+:(\d{1,5})", host)
    return match is not None and 0 < int(match[1]) < 2**16


def given_layout(tf_config: Document) -> Layout:
    """One task of a cluster that somebody else laid out: a scheduler, or a human on several machines.

    Args:
        tf_config: of this process.

    Returns:
        The layout, with the one task to run here.

    Raises:
        BridgeError: for a wrong TF_CONFIG, or one without a cluster or a task.

    Example:
        >>> from estimator_bridge.runtime.json_positions import read_object
        >>> text = '{"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}}'
        >>> [str(task) for task in given_layout(read_object(text, "job.json")).tf_configs]
        ['ps 0']
    """
    servers = servers_of(tf_config)
    check(tf_config, chief_needed=False)
    own = tf_config.value["task"]
    return Layout(servers, {TaskId(own["type"], int(own["index"])): json.dumps(tf_config.value)})


def is_loopback(address: str) -> bool:
    """Whether an address, ``host:port``, can be reached from its own machine alone.

    Example:
        >>> [is_loopback(address) for address in ("127.0.0.1:2222", "[::1]:2222", "worker:2222")]
        [True, True, False]
    """
    host = address.rpartition(":")[0].strip("[]")
    return host in {"localhost", "::1"} or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))


def servers_of(tf_config: Document) -> dict[TaskId, str]:
    """Who serves in the cluster of a TF_CONFIG, and where.

    Args:
        tf_config: with or without a task.

    Returns:
        Task -> address.

    Raises:
        BridgeError: for a wrong cluster, or none.

    Example:
        >>> from estimator_bridge.runtime.json_positions import read_object
        >>> servers_of(read_object('{"cluster": {"chief": ["a:1"], "evaluator": ["a:2"]}}', "job.json"))
        {TaskId(job='chief', index=0): 'a:1'}
    """
    cluster = tf_config.value.get("cluster")
    if not cluster:
        raise BridgeError(f"{tf_config.source} names no cluster.", expected=EXPECTED, received=dict(tf_config.value))
    task = tf_config.value.get("task") or {"type": next(iter(cluster)) if isinstance(cluster, dict) else None, "index": 0}
    check(dataclasses.replace(tf_config, value={**tf_config.value, "task": task}), chief_needed=False)
    return {
        TaskId(job, index): address
        for job, tasks in cluster.items()
        if job not in SERVERLESS
        for index, address in enumerate(addresses(tasks))
    }
