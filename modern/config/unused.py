"""Settings that nothing reads in this process; a setting that must not be ignored is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.process import CONNECTS, find_unread_settings
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.runtime_settings import find_gpu_settings


def find_unused(config: ModernConfig, settings: Mapping[str, Any]) -> dict[str, str]:
    """Finds the settings that nothing here acts on.

    Args:
        config: Modern configuration.
        settings: Its settings by name.

    Returns:
        Setting -> reason.

    Raises:
        BridgeError: A setting must not be ignored: the job would compute something else.

    Example:
        >>> from estimator_bridge.compat.config.model import Strategy
        >>> find_unused(ModernConfig(strategy=Strategy(tpu="x")), {"strategy.tpu": "x"})
        {'strategy.tpu': 'only TPUStrategy reads it'}
    """
    _refuse_lonely_tasks(config)
    _refuse_evaluation(config)
    if "devices.gpu_memory_fraction" in settings:
        raise BridgeError(
            "devices.gpu_memory_fraction cannot be set: tf.config takes megabytes.",
            fix="Set devices.gpu_memory_limits instead.",
        )
    return find_gpu_settings(settings) | find_unread_settings(config)


def _refuse_lonely_tasks(config: ModernConfig) -> None:
    own = config.cluster
    training = sum(len(tasks) for job, tasks in own.jobs.items() if job in {"chief", "worker"})
    if training > 1 and own.task_type != "evaluator" and config.strategy.name not in {*CONNECTS, "TPUStrategy"}:
        raise BridgeError(
            f"The cluster has {training} tasks that train, and {config.strategy.name or 'one device'} belongs to one process: each would "
            "train a model of its own.",
            expected=f"strategy.name of {' or '.join(sorted(CONNECTS))}",
            received=config.strategy.name,
            fix="Set strategy.name, or drop cluster.jobs.",
        )


def _refuse_evaluation(config: ModernConfig) -> None:
    kind = config.strategy.evaluation.get("kind")
    if config.cluster.task_type == "evaluator" and kind in CONNECTS:
        raise BridgeError(
            f"strategy.evaluation: {kind} spans several processes, and an evaluator is one.",
            expected="MirroredStrategy, CentralStorageStrategy or OneDeviceStrategy",
            received=kind,
        )
