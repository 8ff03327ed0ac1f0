"""Arguments and callbacks of ``Model.fit`` from a ModernConfig, read back from the model and the callbacks."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.model import ConfigPart, ModernConfig
from estimator_bridge.compat.config.output.callback_calls import TO_FOLDER, callback_calls
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.modern.config.fit.arguments import fit_arguments
from estimator_bridge.modern.config.fit.callbacks import differences, in_force, make_all, model_folder, scope
from estimator_bridge.modern.config.runtime_settings import check

_ORIGINS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "evaluate": (
        ("steps", "evaluation.steps"),
        ("start_delay_secs", "evaluation.start_delay_secs"),
        ("throttle_secs", "evaluation.throttle_secs"),
        ("log_dir", "evaluation.name"),
        ("log_dir", "training.model_dir"),
    ),
    "save": (
        ("directory", "training.model_dir"),
        ("every_steps", "checkpoint.interval_steps"),
        ("every_secs", "checkpoint.interval_secs"),
        ("max_to_keep", "checkpoint.max_to_keep"),
        ("keep_checkpoint_every_n_hours", "checkpoint.keep_every_n_hours"),
    ),
    "stop": (("last_step", "training.max_steps"),),
    "events": (("every_steps", "summaries.update_freq"), ("log_dir", "training.model_dir")),
    "speed": (("every_steps", "summaries.speed_freq"), ("log_dir", "training.model_dir")),
}
"""Origin of a callback -> its arguments and the settings that they come from."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """Arguments of ``fit`` other than the dataset.

    Attributes:
        arguments: ``steps_per_epoch`` and ``epochs``.
        callbacks: Callbacks in the order in which they have to run.
        in_force: Setting -> value, read back.
        without_effect: Setting that nothing here acts on -> reason.
    """

    arguments: Mapping[str, int]
    callbacks: list[Any]
    in_force: Mapping[str, Any]
    without_effect: Mapping[str, str]


def prepare_fit(config: ModernConfig, pending: Collection[str], model: Any, checkpoint: Any, validation_data: Any) -> Fit:
    """Makes the arguments and callbacks of ``fit``, and reads their settings back.

    Args:
        config: Modern configuration.
        pending: Names of the settings that are to be in force.
        model: Model, compiled and restored: training continues at the step of its optimizer.
        checkpoint: A ``tf.train.Checkpoint`` to save, or None.
        validation_data: A dataset, or None.

    Returns:
        Arguments, callbacks, and what they hold.

    Raises:
        BridgeError: A setting is not in force, or needs a model_dir and there is none.
    """
    _require_folder(config, checkpoint)
    start = int(model.optimizer.iterations.numpy())
    arguments = fit_arguments(config, start)
    known = scope(checkpoint=checkpoint, validation_data=validation_data, max_steps=config.training.max_steps)
    calls = callback_calls(config)
    made = make_all(calls, known)
    settings = {name: value for name, value in flatten(config).items() if name in pending}
    differing = {origin: differences(callback, calls[origin], known) for origin, callback in made.items()}
    held = _held(config, settings, differing) | _held_by_model(config, model, start, arguments)
    unused = dict(_unused(config, settings, checkpoint, validation_data, made))
    if "training.model_dir" in settings and "training.model_dir" not in held:
        unused["training.model_dir"] = "nothing is written there"
    settings = {name: value for name, value in settings.items() if name not in unused}
    found = {name: held.get(name) for name in settings}
    check(settings, found)
    return Fit(arguments, list(made.values()), found, unused)


def _require_folder(config: ModernConfig, checkpoint: Any) -> None:
    saves = checkpoint is not None and (config.checkpoint.interval_steps or config.checkpoint.interval_secs)
    writing = [part.kind for part in config.callbacks if part.kind in TO_FOLDER and not part.arguments.get("log_dir")]
    needs = [*writing, *(part.kind for part in config.exporters), *(["Saving checkpoints"] if saves else [])]
    needs += ["summaries"] if config.summaries.update_freq or config.summaries.speed_freq else []
    for what in needs:
        model_folder(config, what)


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
            yield name, "the dataset that fit gets is batched already"
    for index, part in enumerate(config.callbacks):
        if f"callbacks[{index}]" not in made:
            what = "checkpoint to save was" if part.kind == "SaveCheckpoint" else "validation data were"
            yield f"callbacks[{index}]", f"no {what} given"


def _held(config: ModernConfig, settings: Mapping[str, Any], differing: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    held: dict[str, Any] = {"summaries.update_freq": 0, "summaries.speed_freq": 0}
    for origin, pairs in _ORIGINS.items():
        if origin in differing:
            own = in_force(pairs, differing[origin], settings)
            if origin == "evaluate" and config.training.model_dir is None:
                del own["training.model_dir"]
            held |= own
    for name in ("callbacks", "exporters"):
        parts = enumerate(getattr(config, name))
        held[name] = tuple(_held_part(part, differing.get(f"{name}[{index}]", {})) for index, part in parts)
    return held


def _held_part(part: ConfigPart, differing: Mapping[str, Any]) -> ConfigPart:
    return ConfigPart(part.kind, {**part.arguments, **differing})


def _held_by_model(config: ModernConfig, model: Any, start: int, arguments: Mapping[str, int]) -> dict[str, Any]:
    steps = getattr(model, "_steps_per_execution", None)
    held: dict[str, Any] = {"training.steps_per_execution": None if steps is None else int(steps.numpy())}
    reached = start + arguments.get("steps_per_epoch", 0) * arguments.get("epochs", 0)
    if max(reached, start) < (config.training.max_steps or 0):
        held["training.max_steps"] = reached
    return held
