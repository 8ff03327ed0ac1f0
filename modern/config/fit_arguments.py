"""What ``compile``, ``fit`` and the checkpoint manager get of a ModernConfig."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.compat.config.model import Arguments, ModernConfig, Part
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
    return _manager(config, checkpoint, model_folder(config, "training.model_dir"))


def _manager(config: ModernConfig, checkpoint: Any, folder: str) -> Any:
    import tensorflow as tf

    keep = config.checkpoint.max_to_keep
    return tf.train.CheckpointManager(
        checkpoint,
        checkpoint_folder(config, folder),
        max_to_keep=None if keep == "all" else keep or 5,
        keep_checkpoint_every_n_hours=config.checkpoint.keep_every_n_hours,
        checkpoint_name="model.ckpt",
    )


def make_callbacks(config: ModernConfig, checkpoint: Any = None, validation_data: Any = None) -> dict[str, Any]:
    """The callbacks of a configuration.

    Args:
        config: what to make them of.
        checkpoint: a ``tf.train.Checkpoint`` to save; without one nothing is saved.
        validation_data: a dataset to evaluate on; without one nothing is evaluated.

    Returns:
        What made it -> callback, in the order in which they have to run: what evaluates before what stops or exports.
    """
    from estimator_bridge.compat.config.output import callbacks

    made = {"evaluate": _evaluate(config, validation_data)} if validation_data is not None else {}
    for index, part in enumerate(config.callbacks):
        made[f"callbacks[{index}]"] = _PARTS[part.kind](part, config, checkpoint, validation_data)
    made |= {f"exporters[{index}]": exporter(part, config) for index, part in enumerate(config.exporters)}
    own = config.checkpoint
    if checkpoint is not None and (own.interval_steps or own.interval_secs):
        made["save"] = callbacks.SaveCheckpoint(checkpoint_manager(config, checkpoint), own.interval_steps, own.interval_secs)
    if config.training.max_steps is not None:
        made["stop"] = callbacks.StopAtStep(last_step=config.training.max_steps)
    written = {"events": (config.summaries.update_freq, False), "speed": (config.summaries.speed_freq, True)}
    for name, (steps, speed) in written.items():
        if steps:
            made[name] = callbacks.WriteSummaries(model_folder(config, "summaries"), steps, speed=speed)
    return {name: callback for name, callback in made.items() if callback is not None}


def exporter(part: Part, config: ModernConfig) -> Any:
    """The callback of an exporter."""
    from estimator_bridge.compat.config.output import callbacks

    when = part.kind.removeprefix("Export").removeprefix("At").lower()
    keep = None if when == "end" else part.arguments.get("exports_to_keep", 5)
    folder = f"{checkpoint_folder(config, model_folder(config, part.kind))}/export/{part.arguments['name']}"
    return callbacks.Export(folder, when, keep, config.training.max_steps)


def model_folder(config: ModernConfig, what: str) -> str:
    """model_dir, for something that needs it."""
    if config.training.model_dir is None:
        raise BridgeError(f"{what} needs a folder.", expected="training.model_dir", fix="Set RunConfig(model_dir=...).")
    return config.training.model_dir


def folder_of(config: ModernConfig, name: str | None) -> str:
    """Where an evaluation's events go, as an Estimator has it."""
    return f"{model_folder(config, 'evaluation')}/eval{'_' + name if name else ''}"


def _evaluate(config: ModernConfig, data: Any, part: Part | None = None) -> Any:
    from estimator_bridge.compat.config.output import callbacks

    own = config.evaluation
    given: Arguments = part.arguments if part else {"steps": own.steps, "name": own.name}
    steps, name = given.get("steps"), given.get("name")  # a hook without them takes all input, and has no name
    return callbacks.Evaluate(
        data,
        None if steps == "all" else steps,
        given.get("every_steps"),
        own.start_delay_secs or 0.0,
        own.throttle_secs or 0.0,
        folder_of(config, name) if config.training.model_dir else None,
    )


def _save(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    from estimator_bridge.compat.config.output import callbacks

    if checkpoint is None:
        return None
    manager = _manager(config, checkpoint, part.arguments["directory"])
    return callbacks.SaveCheckpoint(manager, part.arguments.get("every_steps"), part.arguments.get("every_secs"))


def _stop(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    from estimator_bridge.compat.config.output import callbacks

    folder = folder_of(config, config.evaluation.name) if config.training.model_dir else None
    return getattr(callbacks, part.kind)(**{"eval_dir": folder, **part.arguments})


def _to_folder(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    """What writes, to model_dir unless it was given a folder of its own."""
    from estimator_bridge.compat.config.output import callbacks

    given = {"log_dir": part.arguments.get("log_dir") or model_folder(config, part.kind)}
    if part.kind == "Profile":
        return callbacks.Profile(**{**part.arguments, **given})
    return callbacks.WriteSummaries(**{**part.arguments, **given}, speed=part.kind == "StepsPerSecond")


def _every(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    return None if data is None else _evaluate(config, data, part)


def _plain(part: Part, config: ModernConfig, checkpoint: Any, data: Any) -> Any:
    from estimator_bridge.compat.config.output import callbacks

    return getattr(callbacks, part.kind)(**part.arguments)


_PARTS: Mapping[str, Callable[[Part, ModernConfig, Any, Any], Any]] = {
    "StopAtStep": _plain,
    "LogValues": _plain,
    "StopOnNan": _plain,
    "SaveCheckpoint": _save,
    "WriteSummaries": _to_folder,
    "StepsPerSecond": _to_folder,
    "Profile": _to_folder,
    "EvaluateEvery": _every,
    "StopAtThreshold": _stop,
    "StopWithoutImprovement": _stop,
}
