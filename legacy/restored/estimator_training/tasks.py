"""Fills the RunConfig of a task that the coordinator has started."""

from __future__ import annotations

from typing import Any

from tensorflow.python.distribute import distribute_coordinator
from tensorflow.python.training import server_lib

CHIEF: str = distribute_coordinator._TaskType.CHIEF
EVALUATOR: str = distribute_coordinator._TaskType.EVALUATOR
PS: str = distribute_coordinator._TaskType.PS
WORKER: str = distribute_coordinator._TaskType.WORKER


def adopt_worker_context(config: Any, context: Any) -> None:
    """Makes a RunConfig describe the task of a worker context.

    Args:
        config: RunConfig, changed in place.
        context: Coordinator's context of the current worker.

    Raises:
        RuntimeError: The context's task type is not in its cluster.

    Example:
        >>> from types import SimpleNamespace
        >>> config = SimpleNamespace()
        >>> local = SimpleNamespace(cluster_spec=None, task_type=None, task_id=None, master_target="", is_chief=True)
        >>> adopt_worker_context(config, local)
        >>> config._num_worker_replicas, config._global_id_in_cluster
        (1, 0)
    """
    config._service = None
    config._task_type, config._task_id = context.task_type, context.task_id
    config._master = config._evaluation_master = context.master_target
    config._is_chief = context.is_chief
    if not context.cluster_spec:
        _place_without_cluster(config, context.cluster_spec, num_workers=1, number=0)
    elif context.task_type == EVALUATOR:
        # An evaluator reads checkpoints and must not wait for the cluster.
        _place_without_cluster(config, server_lib.ClusterSpec({}), num_workers=0, number=None)
    else:
        _place_in_cluster(config, context.cluster_spec)


def global_id(cluster_spec: Any, task_type: str | None, task_id: int) -> int:
    """Returns the number of a task among all tasks: the chief first, parameter servers last, other jobs by name between them.

    Args:
        cluster_spec: ClusterSpec of the task.
        task_type: Job of the task; None gives 0.
        task_id: Index of the task in its job.

    Returns:
        The number, from 0.

    Raises:
        RuntimeError: The cluster has no such job.

    Example:
        >>> cluster = server_lib.ClusterSpec({"ps": ["a"], "worker": ["b", "c"], "chief": ["d"]})
        >>> [global_id(cluster, *task) for task in (("chief", 0), ("worker", 1), ("ps", 0))]
        [0, 2, 3]
    """
    if not task_type:
        return 0
    jobs = sorted(cluster_spec.jobs, key=lambda job: (job == PS, job != CHIEF, job))
    if task_type not in jobs:
        raise RuntimeError(f"A task of type {task_type!r} is not in its own cluster. Received: {cluster_spec}.")
    before = jobs[: jobs.index(task_type)]
    return task_id + sum(len(cluster_spec.job_tasks(job)) for job in before)


def _place_without_cluster(config: Any, cluster_spec: Any, *, num_workers: int, number: int | None) -> None:
    config._cluster_spec = cluster_spec
    config._num_ps_replicas = 0
    config._num_worker_replicas = num_workers
    config._global_id_in_cluster = number


def _place_in_cluster(config: Any, cluster_spec: Any) -> None:
    sizes = {job: len(tasks) for job, tasks in cluster_spec.as_dict().items()}
    config._cluster_spec = cluster_spec
    config._num_ps_replicas = sizes.get(PS, 0)
    config._num_worker_replicas = sizes.get(CHIEF, 0) + sizes.get(WORKER, 0)
    config._global_id_in_cluster = global_id(cluster_spec, config._task_type, config._task_id)
