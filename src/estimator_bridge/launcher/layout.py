"""Layouts of clusters: the tasks, their addresses, and the TF_CONFIG of each."""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from estimator_bridge.cluster.tasks import TaskContext, TaskId
from estimator_bridge.errors import BridgeError
from estimator_bridge.launcher.ports import free_ports

_HOST = "127.0.0.1"


@dataclasses.dataclass(frozen=True)
class Layout:
    """A cluster, and which of its tasks run on this machine.

    Attributes:
        addresses: Address of every task that serves; an evaluator is no part of Estimator's cluster.
        tf_configs: TF_CONFIG as JSON, for every task that runs on this machine; servers first.
    """

    addresses: Mapping[TaskId, str]
    tf_configs: Mapping[TaskId, str]

    @property
    def is_local(self) -> bool:
        """True if no task runs on another machine."""
        return all(is_loopback(address) for address in self.addresses.values())

    @property
    def is_whole(self) -> bool:
        """True if one launcher runs all tasks that serve."""
        return self.addresses.keys() <= self.tf_configs.keys()

    @property
    def has_servers(self) -> bool:
        """True unless a chief is the only task, which starts no server."""
        return len(self.addresses) > 1


def make_layout(addresses: Mapping[TaskId, str], tasks: Sequence[TaskId]) -> Layout:
    """Makes the layout of a cluster.

    Args:
        addresses: Addresses of all tasks that serve.
        tasks: Tasks that run on this machine.

    Example:
        >>> chief = TaskId("chief", 0)
        >>> make_layout({chief: "127.0.0.1:20000"}, [chief]).tf_configs[chief]
        '{"cluster": {"chief": ["127.0.0.1:20000"]}, "task": {"type": "chief", "index": 0}}'
    """
    cluster: dict[str, list[str]] = {}
    for member, address in addresses.items():
        cluster.setdefault(member.job, []).append(address)
    tf_configs = {task: json.dumps({"cluster": cluster, "task": {"type": task.job, "index": task.index}}) for task in tasks}
    return Layout(addresses, tf_configs)


def list_tasks(counts: Mapping[str, int]) -> list[TaskId]:
    """Lists the tasks of a new cluster, servers first.

    Args:
        counts: Number of tasks of each job.

    Raises:
        BridgeError: No task trains.

    Example:
        >>> [str(task) for task in list_tasks({"chief": 1, "worker": 1, "ps": 1, "evaluator": 1})]
        ['ps 0', 'worker 0', 'chief 0', 'evaluator 0']
    """
    tasks = [TaskId(job, index) for job in ("ps", "worker", "chief", "evaluator") for index in range(counts.get(job, 0))]
    check_trainers(tasks)
    return tasks


def check_trainers(tasks: Iterable[TaskId]) -> None:
    """Refuses a cluster without a task that trains.

    Args:
        tasks: Tasks of the cluster.

    Raises:
        BridgeError: There is neither a chief nor a worker.
    """
    if not any(task.trains for task in tasks):
        raise BridgeError(
            "No task would train.",
            expected="a chief or a worker",
            received=", ".join(map(str, tasks)) or "no task",
            fix="Add a chief: --chief 1, or in TF_CONFIG.",
        )


def local_layout(counts: Mapping[str, int]) -> Layout:
    """Makes a cluster on this machine's loopback interface, on ports that are free now.

    Args:
        counts: Number of tasks of each job.

    Raises:
        BridgeError: No task trains.
    """
    tasks = list_tasks(counts)
    servers = [task for task in tasks if task.serves]
    ports = free_ports(len(servers))
    return make_layout({task: f"{_HOST}:{port}" for task, port in zip(servers, ports, strict=True)}, tasks)


def hosted_layout(hosts: Sequence[str], counts: Mapping[str, int], task: str) -> Layout:
    """Makes the layout of one task in a cluster on several machines, each of which gets the same list of hosts.

    Args:
        hosts: Addresses (``host:port``) of the chief, then of the workers, then of the parameter servers.
        counts: Number of tasks of each job.
        task: Task of this machine, e.g. ``worker:1``.

    Raises:
        BridgeError: There are more or fewer hosts than tasks, or the task is not in the cluster.

    Example:
        >>> layout = hosted_layout(["a:2222", "b:2222"], {"chief": 1, "ps": 1}, "ps:0")
        >>> layout.tf_configs[TaskId("ps", 0)]
        '{"cluster": {"chief": ["a:2222"], "ps": ["b:2222"]}, "task": {"type": "ps", "index": 0}}'
    """
    servers = [TaskId(job, index) for job in ("chief", "worker", "ps") for index in range(counts.get(job, 0))]
    if {len(hosts), len(set(hosts))} != {len(servers)} or not all(map(_is_address, hosts)):
        raise BridgeError(
            "--hosts does not give each task an address of its own.",
            expected=f"{len(servers)} different addresses such as host:2222, for {', '.join(map(str, servers))}",
            received=",".join(hosts),
        )
    named = {f"{each.job}:{each.index}": each for each in (*servers, TaskId("evaluator", 0))}
    if task not in named:
        raise BridgeError("The cluster has no such task.", expected=f"--task with one of {', '.join(named)}", received=task)
    return make_layout(dict(zip(servers, hosts, strict=True)), [named[task]])


def _is_address(host: str) -> bool:
    match = re.fullmatch(r"[^\s/]+:(\d{1,5})", host)
    return match is not None and 0 < int(match[1]) < 2**16


def given_layout(context: TaskContext) -> Layout:
    """Makes the layout of one task in a cluster that a scheduler or the user laid out.

    Args:
        context: TF_CONFIG of this process, which is passed on unchanged.

    Raises:
        BridgeError: TF_CONFIG is wrong, or names no cluster or no task.
    """
    servers = context.servers(task_needed=True)
    assert context.task is not None
    return Layout(servers, {context.task: json.dumps(context.value)})


def is_loopback(address: str) -> bool:
    """Returns True if an address, ``host:port``, can be reached from its own machine only.

    Example:
        >>> [is_loopback(address) for address in ("127.0.0.1:2222", "[::1]:2222", "worker:2222")]
        [True, True, False]
    """
    host = address.rpartition(":")[0].strip("[]")
    return host in {"localhost", "::1"} or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))
