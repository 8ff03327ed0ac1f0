"""What ``compile``, ``fit`` and the checkpoint manager get of a ModernConfig."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.compat.config.model import ModernConfig, Part
from estimator_bridge.compat.config.settings import checkpoint_folder
from estimator_bridge.errors import BridgeError


def compile_arguments(config: ModernConfig) -> dict[str, Any]:
    """What ``Model.compile`` gets beside loss, optimizer and metrics.

    Args:
        config: its training section.

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
    """How long ``Model.fit`` runs: epochs that end where checkpoints are saved, and no step beyond max_steps.

    Args:
        config: its training, checkpoint and evaluation sections.
        restored_step: the global step of the checkpoint that training goes on from.

    Returns:
        Keyword arguments; ``epochs=0`` where max_steps is reached already. Where steps are left over from the last epoch, the callbacks
        stop it at max_steps.

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


def checkpoint_manager(config: ModernConfig, checkpoint: Any) -> Any:
    """The checkpoint manager of a configuration.

    Args:
        config: its checkpoint section, and model_dir.
        checkpoint: a ``tf.train.Checkpoint``.

    Returns:
        A ``tf.train.CheckpointManager``.

    Raises:
        BridgeError: without a model_dir.
    """
    import tensorflow as tf

    own = config.checkpoint
    return tf.train.CheckpointManager(
        checkpoint,
        checkpoint_folder(config, _folder(config, "training.model_dir")),
        max_to_keep=None if own.max_to_keep == "all" else own.max_to_keep,
        keep_checkpoint_every_n_hours=own.keep_every_n_hours,
        checkpoint_name="model.ckpt",
    )


def make_callbacks(config: ModernConfig, checkpoint: Any = None, validation_data: Any = None) -> list[Any]:
    """The callbacks of a configuration, for ``Model.fit``.

    Args:
        config: what to make them of.
        checkpoint: a ``tf.train.Checkpoint`` to save; without one nothing is saved.
        validation_data: a dataset to evaluate on; without one nothing is evaluated.

    Returns:
        Callbacks in the order in which they have to run: what evaluates before what stops.
    """
    from estimator_bridge.compat.config import callbacks

    made = [_PARTS[part.kind](part, config, checkpoint, validation_data) for part in config.callbacks]
    made += [_exporter(part, config) for part in config.exporters]
    if checkpoint is not None and (config.checkpoint.interval_steps or config.checkpoint.interval_secs):
        own = config.checkpoint
        made.append(callbacks.SaveCheckpoint(checkpoint_manager(config, checkpoint), own.interval_steps, own.interval_secs))
    if validation_data is not None:
        made.insert(0, _evaluate(config, validation_data))
    if config.training.max_steps is not None:
        made.append(callbacks.StopAtStep(last_step=config.training.max_steps))
    made += _summaries_of(config)
    return [callback for callback in made if callback is not None]


def _folder(config: ModernConfig, what: str) -> str:
    if config.training.model_dir is None:
        raise BridgeError(f"{what} needs a folder.", expected="training.model_dir", fix="Set RunConfig(model_dir=...).")
    return config.training.model_dir


def _evaluate(config: ModernConfig, data: Any, part: Part | None = None) -> Any:
    from estimator_bridge.compat.config import callbacks

    own, given = config.evaluation, dict(part.arguments if part else {})
    steps = given.get("steps", own.steps)
    name = given.get("name", own.name)
    folder = f"{config.training.model_dir}/eval{'_' + name if name else ''}" if config.training.model_dir else None
    every, all_steps = given.get("every_steps"), steps == "all"
    return callbacks.Evaluate(
        data, None if all_steps else steps, every, own.start_delay_secs or 0, own.throttle_secs or 0, folder
    )


def _summaries_of(config: ModernConfig) -> list[Any]:
    from estimator_bridge.compat.config import callbacks

    own = config.summaries
    written = [(own.update_freq, False), (own.speed_freq, True)]
    return [callbacks.WriteSummaries(_folder(config, "summaries"), steps, speed=speed) for steps, speed in written if steps]


def _exporter(part: Part, config: ModernConfig) -> Any:
    from estimator_bridge.compat.config import callbacks

    when = part.kind.removeprefix("Export").removeprefix("At").lower()
    keep = None if when == "end" else part.arguments.get("exports_to_keep", 5)
    return callbacks.Export(f"{_folder(config, part.kind)}/export/{part.arguments['name']}", when, keep)


def _save(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    from estimator_bridge.compat.config import callbacks

    if checkpoint is None:
        return None
    import tensorflow as tf

    keep = config.checkpoint.max_to_keep
    manager = tf.train.CheckpointManager(
        checkpoint, checkpoint_folder(config, part.arguments["directory"]), None if keep == "all" else keep or 5
    )
    return callbacks.SaveCheckpoint(manager, part.arguments.get("every_steps"), part.arguments.get("every_secs"))


def _early_stopping(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    """Patience counts evaluations: the steps without improvement divided by the steps between two evaluations."""
    import tf_keras

    between = config.checkpoint.interval_steps or part.arguments["max_steps"]
    return tf_keras.callbacks.EarlyStopping(
        monitor=f"val_{part.arguments['monitor']}",
        mode=part.arguments["mode"],
        patience=max(math.ceil(part.arguments["max_steps"] / between), 1),
        start_from_epoch=math.ceil(part.arguments.get("min_steps", 0) / between),
    )


def _threshold(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    from estimator_bridge.compat.config import callbacks

    return callbacks.StopAtThreshold(**{**part.arguments, "monitor": f"val_{part.arguments['monitor']}"})


def _summaries(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    from estimator_bridge.compat.config import callbacks

    given = dict(part.arguments)
    return callbacks.WriteSummaries(
        given.pop("log_dir", None) or _folder(config, part.kind), speed=part.kind == "StepsPerSecond", **given
    )


def _profile(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    from estimator_bridge.compat.config import callbacks

    given = dict(part.arguments)
    return callbacks.Profile(given.pop("log_dir", None) or _folder(config, part.kind), **given)


def _every(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    return None if data is None else _evaluate(config, data, part)


def _plain(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    from estimator_bridge.compat.config import callbacks

    return getattr(callbacks, part.kind)(**part.arguments)


_PARTS: Mapping[str, Callable[[Part, ModernConfig, Any, Any], Any]] = {
    "StopAtStep": _plain,
    "LogValues": _plain,
    "StopOnNan": _plain,
    "SaveCheckpoint": _save,
    "WriteSummaries": _summaries,
    "StepsPerSecond": _summaries,
    "Profile": _profile,
    "EvaluateEvery": _every,
    "EarlyStopping": _early_stopping,
    "StopAtThreshold": _threshold,
}
