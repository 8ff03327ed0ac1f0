"""What ``Model.fit`` gets of a ModernConfig, read back from the model, the checkpoint manager and the callbacks themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.model import ModernConfig, Part
from estimator_bridge.compat.config.settings import checkpoint_folder, flatten
from estimator_bridge.modern.config.fit_arguments import fit_arguments, make_callbacks
from estimator_bridge.modern.config.runtime_settings import check


@dataclasses.dataclass(frozen=True)
class Fit:
    """What ``fit`` gets beside the dataset.

    Attributes:
        arguments: steps_per_epoch and epochs.
        callbacks: in the order in which they have to run.
        in_force: setting -> value, read back.
        without_effect: settings that nothing here acts on, with the reason.
    """

    arguments: Mapping[str, int]
    callbacks: list[Any]
    in_force: Mapping[str, Any]
    without_effect: Mapping[str, str]


def prepare_fit(config: ModernConfig, pending: Collection[str], model: Any, checkpoint: Any, validation_data: Any) -> Fit:
    """Makes fit's arguments and callbacks, and reads back every setting of training, evaluation, checkpoints and summaries.

    Args:
        config: the configuration.
        pending: names of the settings that are to be in force.
        model: compiled and restored: its optimizer's iterations are the step that training goes on from.
        checkpoint: a ``tf.train.Checkpoint`` to save, or None.
        validation_data: a dataset, or None.

    Returns:
        What ``fit`` gets.

    Raises:
        BridgeError: for a setting that is not in force.
    """
    start = int(model.optimizer.iterations.numpy())
    arguments = fit_arguments(config, start)
    made = make_callbacks(config, checkpoint, validation_data)
    settings = {name: value for name, value in flatten(config).items() if name in pending}
    told = dict(_told(config, model, arguments, start, made))
    unused = dict(_unused(config, settings, checkpoint, validation_data, made))
    if "training.model_dir" in settings and "training.model_dir" not in told:
        unused["training.model_dir"] = "nothing is written there"
    settings = {name: value for name, value in settings.items() if name not in unused}
    in_force = {name: told.get(name) for name in settings}
    check(settings, in_force)
    return Fit(arguments, list(made.values()), in_force, unused)


def _unused(
    config: ModernConfig, settings: Mapping[str, Any], checkpoint: Any, validation_data: Any, made: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for name in settings:
        if name.startswith("checkpoint.") and checkpoint is None:
            yield name, "no checkpoint to save was given"
        elif name.startswith("checkpoint.") and "save" not in made:
            yield name, "neither checkpoint.interval_steps nor checkpoint.interval_secs says when to save"
        if name.startswith("evaluation.") and validation_data is None:
            yield name, "no validation data were given"
        elif name == "evaluation.name" and config.training.model_dir is None:
            yield name, "without a model_dir no events are written"
        if name.endswith("_batch_size"):
            yield name, "the dataset that fit gets is batched by whoever makes it"
    for index, part in enumerate(config.callbacks):
        if f"callbacks[{index}]" not in made:
            what = "checkpoint to save was" if part.kind == "SaveCheckpoint" else "validation data were"
            yield f"callbacks[{index}]", f"no {what} given"


def _told(
    config: ModernConfig, model: Any, arguments: Mapping[str, int], start: int, made: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """What the objects hold, under the names of the settings that made them."""
    ran = getattr(model, "_steps_per_execution", None)
    yield "training.steps_per_execution", None if ran is None else int(ran.numpy())
    if "stop" in made:
        reached = start + arguments.get("steps_per_epoch", 0) * arguments.get("epochs", 0)
        last = made["stop"].last_step
        yield "training.max_steps", last if last is None or max(reached, start) >= last else reached
    if "evaluate" in made:
        yield from _of_evaluation(config, made["evaluate"])
    if "save" in made:
        yield from _of_saving(config, made["save"])
    for name, key in (("summaries.update_freq", "events"), ("summaries.speed_freq", "speed")):
        yield name, made[key].timer.every_steps if key in made else 0
        if key in made:
            yield "training.model_dir", made[key].log_dir
    for name in ("callbacks", "exporters"):
        asked = getattr(config, name)
        yield name, tuple(_part(part, made.get(f"{name}[{index}]")) for index, part in enumerate(asked))


def _of_evaluation(config: ModernConfig, made: Any) -> Iterator[tuple[str, Any]]:
    yield "evaluation.steps", "all" if made.steps is None else made.steps
    yield "evaluation.start_delay_secs", made.start_delay_secs
    yield "evaluation.throttle_secs", made.throttle_secs
    if made.log_dir is not None:
        folder = f"{config.training.model_dir}/eval"
        yield "evaluation.name", made.log_dir.removeprefix(folder).removeprefix("_")
        yield "training.model_dir", config.training.model_dir if made.log_dir.startswith(folder) else made.log_dir


def _of_saving(config: ModernConfig, made: Any) -> Iterator[tuple[str, Any]]:
    manager, wanted = made.manager, config.training.model_dir
    folder = checkpoint_folder(config, wanted or "")
    yield "training.model_dir", wanted if manager.directory == folder else manager.directory
    yield "checkpoint.interval_steps", made.timer.every_steps
    yield "checkpoint.interval_secs", made.timer.every_secs
    yield "checkpoint.max_to_keep", "all" if manager._max_to_keep is None else manager._max_to_keep
    yield "checkpoint.keep_every_n_hours", manager._keep_checkpoint_every_n_hours


def _part(part: Part, made: Any) -> Part | None:
    """The part that a callback amounts to: what it holds of the arguments that were asked for."""
    if made is None:
        return part  # told as without effect
    return Part(part.kind, {name: _held(made, name, value) for name, value in part.arguments.items()})


def _held(made: Any, name: str, asked: Any) -> Any:
    if name == "name":  # it is the end of a folder's
        folder = str(getattr(made, "directory", None) or made.log_dir)
        return asked if folder.rpartition("/")[2] in {asked, f"eval_{asked}"} else None
    holders = [made, getattr(made, "timer", None), getattr(made, "manager", None)]
    return next((getattr(one, name) for one in holders if hasattr(one, name)), None)
