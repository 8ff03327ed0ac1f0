"""The coordinator mode that a RunConfig asks for: none, independent workers, or a standalone client."""

from __future__ import annotations

from typing import Any

from tensorflow.python.distribute.distribute_coordinator import CoordinatorMode
from tensorflow.python.platform import tf_logging
from tensorflow.python.training import server_lib

_MODES = (CoordinatorMode.STANDALONE_CLIENT, CoordinatorMode.INDEPENDENT_WORKER)


def init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
    """Completes a RunConfig that has a strategy: sets its strategies, its cluster and the coordinator's mode.

    Args:
        config: RunConfig, changed in place.
        tf_config: Parsed TF_CONFIG; empty if the variable is not set.

    Raises:
        ValueError: A strategy is given twice, or both TF_CONFIG and ``remote_cluster`` name a cluster.

    Example:
        >>> from types import SimpleNamespace
        >>> config = SimpleNamespace(
        ...     _experimental_distribute=None, _train_distribute="a strategy", _eval_distribute=None,
        ...     _init_distributed_setting_from_environment_var=lambda tf_config: None,
        ...     _maybe_overwrite_session_config_for_distributed_training=lambda: None)
        >>> init_run_config(config, {})
        >>> config._distribute_coordinator_mode is None
        True
    """
    for role in ("train", "eval"):
        _adopt_experimental_strategy(config, f"{role}_distribute")
    cluster_spec = server_lib.ClusterSpec(tf_config.get("cluster", {}))
    # As without a cluster: the coordinator sets each task's place when it starts the task.
    config._init_distributed_setting_from_environment_var({})
    mode = _mode(config, cluster_spec)
    config._distribute_coordinator_mode = mode
    if mode is None:
        config._init_distributed_setting_from_environment_var(tf_config)
        config._maybe_overwrite_session_config_for_distributed_training()
    else:
        config._cluster_spec = _remote_cluster(config) if mode == CoordinatorMode.STANDALONE_CLIENT else cluster_spec
    tf_logging.info("RunConfig initialised; mode of the distribute coordinator: %s", mode or "not used")


def should_run_distribute_coordinator(config: Any) -> bool:
    """Returns True if ``train_and_evaluate`` must hand a job to the distribute coordinator.

    Args:
        config: RunConfig of the Estimator.

    Returns:
        True if the RunConfig has a coordinator mode and a cluster.

    Example:
        >>> from types import SimpleNamespace
        >>> should_run_distribute_coordinator(SimpleNamespace())
        False
    """
    mode = getattr(config, "_distribute_coordinator_mode", None)
    if mode is None:
        tf_logging.info("Not using the distribute coordinator.")
        return False
    if mode not in _MODES:
        tf_logging.warning("Unknown distribute_coordinator_mode %r: the distribute coordinator is not used.", mode)
        return False
    if not config.cluster_spec:
        tf_logging.warning("The RunConfig has no cluster: training runs locally, whatever its distribute_coordinator_mode.")
        return False
    return True


def _adopt_experimental_strategy(config: Any, field: str) -> None:
    strategy = getattr(config._experimental_distribute, field, None)
    if not strategy:
        return
    if getattr(config, f"_{field}"):
        raise ValueError(f"A strategy is given twice: set either `{field}` or `experimental_distribute.{field}`.")
    setattr(config, f"_{field}", strategy)


def _mode(config: Any, cluster_spec: Any) -> str | None:
    if not config._train_distribute:
        return None
    if _remote_cluster(config):
        if cluster_spec:
            raise ValueError("Two clusters are given: by TF_CONFIG and by `experimental_distribute.remote_cluster`. Drop one.")
        return CoordinatorMode.STANDALONE_CLIENT
    # A "master" job marks a cluster of TensorFlow 1.3 and before, which has no strategies.
    if not cluster_spec or "master" in cluster_spec.jobs:
        return None
    return CoordinatorMode.INDEPENDENT_WORKER


def _remote_cluster(config: Any) -> Any:
    return getattr(config._experimental_distribute, "remote_cluster", None)
