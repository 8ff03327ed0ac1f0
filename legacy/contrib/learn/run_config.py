"""contrib.learn's RunConfig: a ``tf.estimator.RunConfig`` with its own fields and its own reading of TF_CONFIG.

In contrib.learn a cluster's chief is worker 0, or the master where the environment is the cloud; there is no ``chief`` and no
``evaluator``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.util.deprecation import deprecated

from estimator_bridge.cluster.tasks import TaskContext

_STEPS_OR_TEN_MINUTES = 0
_NOT_IN_UID = (
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
)


class Environment:
    """Where a cluster runs."""

    CLOUD = "cloud"
    GOOGLE = "google"
    LOCAL = "local"


class TaskType:
    """The tasks of a cluster."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"


class RunConfig(tf.estimator.RunConfig):
    """How an Estimator runs, from arguments and from TF_CONFIG; use ``tf.estimator.RunConfig``.

    Args:
        master: the session's target; that of the task unless given.
        num_cores: of ``tf_config``: threads, 0 for as many as there are.
        log_device_placement: of ``tf_config``.
        gpu_memory_fraction: of ``tf_config``.
        save_checkpoints_secs: 600 unless it or ``save_checkpoints_steps`` is given.
        evaluation_master: the target of evaluation's session.

    Raises:
        ValueError: TF_CONFIG names a task that its cluster does not have.
    """

    @deprecated(None, "When switching to tf.estimator.Estimator, use tf.estimator.RunConfig instead.")
    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: int | None = _STEPS_OR_TEN_MINUTES,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float | None = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: str | None = None,
        session_config: Any = None,
        session_creation_timeout_secs: int = 7200,
    ) -> None:
        self._asked_master, self._asked_evaluation_master = master, evaluation_master
        if save_checkpoints_secs == _STEPS_OR_TEN_MINUTES:
            save_checkpoints_secs = 600 if save_checkpoints_steps is None else None
        super().__init__(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            protocol=protocol,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        self._tf_config = tf.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )

    def _init_distributed_setting_from_environment_var(self, tf_config: Mapping[str, Any]) -> None:
        """Called by ``tf.estimator.RunConfig``, whose own reading this replaces."""
        task = tf_config.get("task", {})
        self._task_type = task.get("type")
        self._task_id = _task_id(task)
        self._cluster_spec = tf.train.ClusterSpec(tf_config.get("cluster", {}))
        self._environment = tf_config.get("environment", Environment.LOCAL)
        asked = self._asked_master
        self._master = asked if asked is not None else _target(self._cluster_spec, self._task_type, self._task_id)
        self._evaluation_master = self._asked_evaluation_master or ""
        tasks = {job: self._cluster_spec.num_tasks(job) for job in self._cluster_spec.jobs}
        self._num_ps_replicas = tasks.get(TaskType.PS, 0)
        self._num_worker_replicas = tasks.get(TaskType.WORKER, 0) + tasks.get(TaskType.MASTER, 0)
        chief = TaskType.MASTER if self._environment == Environment.CLOUD else TaskType.WORKER
        self._is_chief = self._task_id == 0 and self._task_type in (None, chief)
        self._global_id_in_cluster = None
        self._service = None

    def _maybe_overwrite_session_config_for_distributed_training(self) -> None:
        """Called by ``tf.estimator.RunConfig``: here the session's configuration is what was given."""

    @property
    def environment(self) -> str:
        """Where the cluster runs: TF_CONFIG's ``environment``, or ``local``."""
        return str(self._environment)

    @property
    def tf_config(self) -> Any:
        """A ConfigProto of the number of cores, the placement's logging and the fraction of GPU memory."""
        return self._tf_config

    @staticmethod
    def get_task_id() -> int:
        """TF_CONFIG's task index, or 0."""
        context = TaskContext.of_this_process()
        return _task_id(context.value.get("task", {})) if context else 0

    def uid(self, whitelist: Any = None) -> str:
        """What tells this configuration from others; those that differ in the ``whitelist`` alone are the same.

        Args:
            whitelist: names of properties that do not count.
        """
        left_out = {f"_{name}" for name in (_NOT_IN_UID if whitelist is None else whitelist)}
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        state["_cluster_spec"] = sorted(self._cluster_spec.as_dict().items())
        return ", ".join(f"{name}={state[name]!r}" for name in sorted(state))


def _task_id(task: Mapping[str, Any]) -> int:
    return int(task.get("index") or 0)


def _target(cluster: Any, task_type: str | None, task_id: int) -> str:
    if not task_type or sum(cluster.num_tasks(job) for job in cluster.jobs) <= 1:
        return ""
    where = f"in the cluster_spec:\n{cluster}\n\nNote that these values may be coming from the TF_CONFIG environment variable."
    if task_type not in cluster.jobs:
        raise ValueError(f"{task_type} is not a valid task_type {where}")
    addresses = cluster.job_tasks(task_type)
    if not 0 <= task_id < len(addresses):
        raise ValueError(f"{task_id} is not a valid task_id for task_type {task_type} {where}")
    return f"grpc://{addresses[task_id]}"
