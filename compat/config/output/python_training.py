"""The lines that hold the arguments of compile and fit, the callbacks, or an evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from estimator_bridge.compat.config.model import Arguments, ModernConfig, Part
from estimator_bridge.compat.config.settings import checkpoint_folder

_CLASSES = {"StepsPerSecond": "WriteSummaries", "EvaluateEvery": "Evaluate"}


def classes_needed(config: ModernConfig) -> list[str]:
    """The classes of ours that the lines speak of.

    Args:
        config: what to print.

    Returns:
        Their names.
    """
    exports = ["Export"] if config.exporters and config.training.model_dir is not None else []
    if config.cluster.task_type == "evaluator":
        return ["Sidecar", "DelayedEvaluator", *exports] if config.training.model_dir is not None else []
    kinds = [_CLASSES.get(part.kind, part.kind) for part in config.callbacks] + exports
    kinds += ["SaveCheckpoint"] if _saves(config) else []
    kinds += ["Evaluate"] if _evaluates(config) else []
    kinds += ["WriteSummaries"] if _summaries(config) else []
    kinds += ["StopAtStep"] if config.training.max_steps is not None else []
    return list(dict.fromkeys(kinds))


def training_lines(config: ModernConfig) -> Iterator[str]:
    """Source for what comes once there is a model.

    Args:
        config: what to print.

    Yields:
        Lines.
    """
    steps = config.training.steps_per_execution
    if steps is not None:
        yield f"compile_arguments = {{'steps_per_execution': {steps}}}  # model.compile(loss, optimizer, **compile_arguments)"
    if config.cluster.task_type == "evaluator":
        yield from _evaluator(config)
        return
    if config.training.global_batch_size is not None or config.training.per_replica_batch_size is not None:
        yield f"global_batch_size = {config.training.global_batch_size}  # of the dataset; {config.training.per_replica_batch_size} a replica"
    yield from _fit(config)
    made = [*_callback_lines(config)]
    if made:
        yield from ["", "", "def make_callbacks(checkpoint, validation_data):", "    return ["]
        yield from (f"        {line}," for line in made)
        yield "    ]"


def _evaluator(config: ModernConfig) -> Iterator[str]:
    own, folder, last = config.evaluation, config.training.model_dir, config.training.max_steps
    if folder is None:
        yield "# This process evaluates checkpoints: say training.model_dir, where they are."
        return
    yield from ["", "", "def make_evaluator(model, validation_data):", "    return DelayedEvaluator("]
    yield from ["        model,", "        validation_data,", f"        {folder!r},"]
    yield f"        steps={None if own.steps == 'all' else own.steps},"
    yield f"        max_evaluations={last},"
    yield "        callbacks=["
    yield from (f"            {_export_line(part, config)}," for part in config.exporters)
    yield f"            Sidecar({_event_folder(config, own.name)!r}, {own.throttle_secs or 0.0}, {last}),"
    yield "        ],"
    yield f"        start_delay_secs={own.start_delay_secs or 0.0},"
    yield from ["    )  # .start() evaluates each checkpoint as it comes"]


def _saves(config: ModernConfig) -> bool:
    return bool(config.checkpoint.interval_steps or config.checkpoint.interval_secs) and config.training.model_dir is not None


def _evaluates(config: ModernConfig) -> bool:
    own = config.evaluation
    return any(value is not None for value in (own.steps, own.name, own.start_delay_secs, own.throttle_secs))


def _summaries(config: ModernConfig) -> list[tuple[int, bool]]:
    own = config.summaries
    written = [(own.update_freq, False), (own.speed_freq, True)] if config.training.model_dir is not None else []
    return [(steps, speed) for steps, speed in written if steps]


def _fit(config: ModernConfig) -> Iterator[str]:
    last, interval = config.training.max_steps, config.checkpoint.interval_steps
    if last is not None:
        yield f"max_steps = {last}  # absolute: a restored model trains for what is left"
        yield ""
        yield ""
        yield "def fit_arguments(restored_step):"
        yield "    left = max(max_steps - restored_step, 0)"
        yield f"    steps = {f'min({interval}, left)' if interval else 'left'}"
        yield "    return {'steps_per_epoch': max(steps, 1), 'epochs': -(-left // steps) if steps else 0}"
    elif interval:
        yield f"fit_arguments = {{'steps_per_epoch': {interval}}}"


def _callback_lines(config: ModernConfig) -> Iterator[str]:
    folder = config.training.model_dir
    if _evaluates(config):
        yield _evaluate_line(config, {"steps": config.evaluation.steps, "name": config.evaluation.name})
    for part in config.callbacks:
        yield _part_line(part, config)
    for part in config.exporters if folder is not None else ():
        yield _export_line(part, config)
    if _saves(config):
        own = config.checkpoint
        yield f"SaveCheckpoint({_manager(config, folder)}, {own.interval_steps}, {own.interval_secs})"
    if config.training.max_steps is not None:
        yield "StopAtStep(last_step=max_steps)"
    for steps, speed in _summaries(config):
        yield f"WriteSummaries({folder!r}, {steps}, speed={speed})"


def _export_line(part: Part, config: ModernConfig) -> str:
    when = part.kind.removeprefix("Export").removeprefix("At").lower()
    keep = None if when == "end" else part.arguments.get("exports_to_keep", 5)
    directory = f"{checkpoint_folder(config, config.training.model_dir or '.')}/export/{part.arguments['name']}"
    return f"Export({directory!r}, {when!r}, {keep}, {config.training.max_steps})"


def _event_folder(config: ModernConfig, name: str | None) -> str | None:
    return f"{config.training.model_dir}/eval{'_' + name if name else ''}" if config.training.model_dir else None


def _manager(config: ModernConfig, folder: str | None) -> str:
    own = config.checkpoint
    kept = None if own.max_to_keep == "all" else own.max_to_keep or 5
    hours = f", keep_checkpoint_every_n_hours={own.keep_every_n_hours}" if own.keep_every_n_hours else ""
    own_folder = checkpoint_folder(config, folder or ".")
    return f"tf.train.CheckpointManager(checkpoint, {own_folder!r}, max_to_keep={kept}{hours}, checkpoint_name='model.ckpt')"


def _evaluate_line(config: ModernConfig, given: Arguments) -> str:
    own, steps, name = config.evaluation, given.get("steps"), given.get("name")
    limits = f"start_delay_secs={own.start_delay_secs or 0}, throttle_secs={own.throttle_secs or 0}"
    counts = f"{None if steps == 'all' else steps}, {given.get('every_steps')}"
    return f"Evaluate(validation_data, {counts}, {limits}, log_dir={_event_folder(config, name)!r})"


def _part_line(part: Part, config: ModernConfig) -> str:
    given: dict[str, Any] = dict(part.arguments)
    if part.kind == "EvaluateEvery":
        return _evaluate_line(config, given)
    if part.kind == "SaveCheckpoint":
        folder = given.pop("directory")
        return f"SaveCheckpoint({_manager(config, folder)}, {given.get('every_steps')}, {given.get('every_secs')})"
    if part.kind in {"WriteSummaries", "StepsPerSecond", "Profile"}:
        given.setdefault("log_dir", config.training.model_dir or ".")
    if part.kind == "StepsPerSecond":
        given["speed"] = True
    if part.kind in {"StopAtThreshold", "StopWithoutImprovement"}:
        given.setdefault("eval_dir", _event_folder(config, config.evaluation.name))
    return f"{_CLASSES.get(part.kind, part.kind)}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
