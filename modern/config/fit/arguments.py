"""Arguments of ``compile`` and ``fit`` from a ModernConfig."""

from __future__ import annotations

import math
from typing import Any

from estimator_bridge.compat.config.model import ModernConfig


def compile_arguments(config: ModernConfig) -> dict[str, Any]:
    """Returns the arguments of ``Model.compile`` other than loss, optimizer and metrics.

    Args:
        config: Modern configuration.

    Returns:
        Keyword arguments.

    Example:
        >>> from estimator_bridge.compat.config.model import Training
        >>> compile_arguments(ModernConfig(training=Training(steps_per_execution=10)))
        {'steps_per_execution': 10}
    """
    steps = config.training.steps_per_execution
    return {} if steps is None else {"steps_per_execution": steps}


def fit_arguments(config: ModernConfig, restored_step: int = 0) -> dict[str, int]:
    """Returns the epochs of ``Model.fit``: they end where checkpoints are saved, and no step is beyond max_steps.

    Args:
        config: Modern configuration.
        restored_step: Global step of the restored checkpoint.

    Returns:
        Keyword arguments; ``epochs=0`` if max_steps is already reached. A callback ends the last epoch at max_steps.

    Example:
        >>> from estimator_bridge.compat.config.model import Checkpoint, Training
        >>> config = ModernConfig(training=Training(max_steps=100), checkpoint=Checkpoint(interval_steps=20))
        >>> fit_arguments(config, restored_step=40)
        {'steps_per_epoch': 20, 'epochs': 3}
    """
    last, interval = config.training.max_steps, config.checkpoint.interval_steps
    if last is None:
        return {} if interval is None else {"steps_per_epoch": interval}
    left = max(last - restored_step, 0)
    steps = min(interval or left, left)
    return {"steps_per_epoch": max(steps, 1), "epochs": math.ceil(left / steps) if steps else 0}
