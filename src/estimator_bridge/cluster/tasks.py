"""Tasks of a cluster as TF_CONFIG names them, and the TF_CONFIG of this process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import Document

_TRAINERS = ("chief", "master", "worker")


@dataclasses.dataclass(frozen=True, order=True)
class TaskId:
    """A task of a cluster, as TF_CONFIG names it.

    Attributes:
        job: Task type: chief, worker, ps or evaluator.
        index: Number of the task in its job, from 0.
    """

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job} {self.index}"

    @property
    def trains(self) -> bool:
        """True for a chief or a worker, whose end is the end of the training."""
        return self.job in _TRAINERS

    @property
    def serves(self) -> bool:
        """True for a task that runs a server; an evaluator only reads checkpoints."""
        return self.job != "evaluator"

    @property
    def file_stem(self) -> str:
        """The name of this task in file names, e.g. ``worker-0``."""
        return f"{self.job}-{self.index}"

    @classmethod
    def of_config(cls, config: Any) -> TaskId:
        """Returns the task of an Estimator's RunConfig."""
        return cls(config.task_type, config.task_id)


@dataclasses.dataclass(frozen=True)
class TaskContext:
    """A TF_CONFIG: the cluster, and which of its tasks a process is.

    Attributes:
        document: JSON object of TF_CONFIG, with positions for messages.

    Example:
        >>> from estimator_bridge.runtime.json_positions import read_object
        >>> text = '{"cluster": {"chief": ["a:1"], "evaluator": ["a:2"]}, "task": {"type": "evaluator", "index": 0}}'
        >>> context = TaskContext(read_object(text, "job.json"))
        >>> context.task, context.servers()
        (TaskId(job='evaluator', index=0), {TaskId(job='chief', index=0): 'a:1'})
    """

    document: Document

    @classmethod
    def of_this_process(cls) -> TaskContext | None:
        """Returns the TF_CONFIG of this process, or None without one.

        Raises:
            BridgeError: TF_CONFIG is not a JSON object.
        """
        from estimator_bridge.compat.config.cluster.tf_config import read_environment  # late: --help needs no tables

        document = read_environment()
        return None if document is None else cls(document)

    @property
    def value(self) -> Mapping[str, Any]:
        """The JSON object of TF_CONFIG."""
        return self.document.value

    @property
    def task(self) -> TaskId | None:
        """The task of this process, or None if TF_CONFIG names none."""
        task = self.value.get("task")
        return TaskId(task["type"], int(task["index"])) if task else None

    def place_on_machine(self) -> tuple[int, int]:
        """Returns the number of this task among the tasks that train on its host, from 0, and how many these are.

        A task that does not train, or a TF_CONFIG without a task, is counted alone.

        Example:
            >>> from estimator_bridge.runtime.json_positions import read_object
            >>> jobs = '{"chief": ["a:1"], "worker": ["b:1", "a:2"]}'
            >>> TaskContext(read_object(f'{{"cluster": {jobs}, "task": {{"type": "worker", "index": 1}}}}', "job")).place_on_machine()
            (1, 2)
        """
        own, servers = self.task, self.servers() if self.value.get("cluster") else {}
        hosts = {task: address.rpartition(":")[0] for task, address in sorted(servers.items()) if task.trains}
        if own not in hosts:
            return 0, 1
        beside = [task for task, host in hosts.items() if host == hosts[own]]
        return beside.index(own), len(beside)

    def servers(self, *, task_needed: bool = False) -> dict[TaskId, str]:
        """Checks this TF_CONFIG, and returns the address of every task that runs a server.

        Args:
            task_needed: True if TF_CONFIG has to name the task of its process.

        Raises:
            BridgeError: TF_CONFIG is wrong, or contains no cluster.
        """
        from estimator_bridge.compat.config.cluster.tf_config import EXPECTED, check
        from estimator_bridge.compat.config.tables.tf_config import addresses

        cluster = self.value.get("cluster")
        if not cluster:
            raise BridgeError(f"{self.document.source} contains no cluster.", expected=EXPECTED, received=dict(self.value))
        document = self.document
        if not task_needed and not self.value.get("task"):
            job = next(iter(cluster)) if isinstance(cluster, dict) else None
            document = dataclasses.replace(document, value={**self.value, "task": {"type": job, "index": 0}})
        check(document, chief_needed=False)
        members = {
            TaskId(job, index): address for job, tasks in cluster.items() for index, address in enumerate(addresses(tasks))
        }
        return {task: address for task, address in members.items() if task.serves}
