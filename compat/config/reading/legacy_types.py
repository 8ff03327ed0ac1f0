"""Types of legacy values, for configs that come from files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.reading.typing_check import conform
from estimator_bridge.errors import BridgeError

Addresses = Mapping[str, tuple[str, ...]]

TYPES: Mapping[str, Any] = {
    "model_dir": str,
    "tf_random_seed": int,
    "save_summary_steps": int,
    "save_checkpoints_steps": int,
    "save_checkpoints_secs": float,
    "keep_checkpoint_max": int,
    "keep_checkpoint_every_n_hours": float,
    "log_step_count_steps": int,
    "protocol": str,
    "cluster_spec": Addresses,
    "task_type": str,
    "task_id": int,
    "master": str,
    "evaluation_master": str,
    "session_creation_timeout_secs": float,
    "experimental_max_worker_delay_secs": float,
    "checkpoint_save_graph_def": bool,
    "tpu_config.iterations_per_loop": int | str,
    "tpu_config.num_shards": int,
    "tpu_config.num_cores_per_replica": int,
    "tpu_config.per_host_input_for_training": bool | int | str,
    "tpu_config.tpu_job_name": str,
    "train_spec.max_steps": int,
    "eval_spec.steps": int,
    "eval_spec.name": str,
    "eval_spec.start_delay_secs": float,
    "eval_spec.throttle_secs": float,
    "sync_replicas_optimizer.replicas_to_aggregate": int,
    "sync_replicas_optimizer.total_num_replicas": int,
    "sync_replicas_optimizer.num_tokens": int,
}
"""Dotted name -> annotation; other names may hold values of any type."""

_MAY_BE_NEGATIVE = {"tf_random_seed", "sync_replicas_optimizer.num_tokens"}


def check_type(name: str, value: Any) -> Any:
    """Returns a value from a file as its field holds it.

    Args:
        name: Dotted name.
        value: Value from the file.

    Returns:
        The value; whole seconds and hours stay whole numbers.

    Raises:
        BridgeError: The value has the wrong type, or is negative.

    Example:
        >>> check_type("save_checkpoints_secs", 600)
        600
    """
    annotation = TYPES.get(name, Any)
    fitting = conform(value, annotation, name)
    if isinstance(fitting, int | float) and not isinstance(fitting, bool) and fitting < 0 and name not in _MAY_BE_NEGATIVE:
        raise BridgeError(f"{name} is negative.", expected="0 or more", received=value)
    return value if annotation is float else fitting
