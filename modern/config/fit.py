"""Arguments and callbacks of ``compile`` and ``fit`` from a ModernConfig, and the evaluator; all are read back."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from estimator_bridge.compat.config.model import LISTS, ConfigPart, ModernConfig
from estimator_bridge.compat.config.output import callbacks
from estimator_bridge.compat.config.output.calls import Call, Name, make
from estimator_bridge.compat.config.output.config_calls import TO_FOLDER, callback_calls, evaluator_call
from estimator_bridge.compat.config.settings import flatten
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.runtime_settings import check

_EVALUATION = {
    "evaluation.steps": "steps",
    "evaluation.name": "log_dir",
    "evaluation.start_delay_secs": "start_delay_secs",
    "evaluation.throttle_secs": "throttle_secs",
}
_ORIGINS: Mapping[str, Mapping[str, str]] = {
    "evaluate": {**_EVALUATION, "training.model_dir": "log_dir"},
    "save": {
        "training.model_dir": "directory",
        "checkpoint.interval_steps": "every_steps",
        "checkpoint.interval_secs": "every_secs",
        "checkpoint.max_to_keep": "max_to_keep",
        "checkpoint.keep_every_n_hours": "keep_checkpoint_every_n_hours",
    },
    "stop": {"training.max_steps": "last_step"},
    "events": {"summaries.update_freq": "every_steps", "training.model_dir": "log_dir"},
    "speed": {"summaries.speed_freq": "every_steps", "training.model_dir": "log_dir"},
    "evaluator": {**_EVALUATION, "training.model_dir": "checkpoint_dir", "training.max_steps": "max_evaluations"},
}
"""Origin of a callback, or the evaluator -> settings, and the arguments that they become."""
_UNREAD = frozenset({"checkpoint_name"})  # arguments that the object does not keep


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
    known = _scope(checkpoint=checkpoint, validation_data=validation_data, max_steps=config.training.max_steps)
    calls = callback_calls(config)
    made = {origin: make(call, known) for origin, call in calls.items() if not _lacks(call, known)}
    settings = {name: value for name, value in flatten(config).items() if name in pending}
    differing = {origin: _differences(callback, calls[origin], known) for origin, callback in made.items()}
    held = _held(config, settings, differing) | _held_by_model(config, model, start, arguments)
    unused = dict(_unused(config, settings, checkpoint, validation_data, made))
    if "training.model_dir" in settings and "training.model_dir" not in held:
        unused["training.model_dir"] = "nothing is written there"
    settings = {name: value for name, value in settings.items() if name not in unused}
    found = {name: held.get(name) for name in settings}
    check(settings, found)
    return Fit(arguments, list(made.values()), found, unused)


def sidecar_evaluator(config: ModernConfig, model: Any, data: Any) -> Any:
    """Makes the evaluator of each checkpoint in model_dir, up to max_steps.

    Args:
        config: Modern configuration: its evaluation and training sections, and its exporters.
        model: Model, compiled under the strategy.
        data: A dataset.

    Returns:
        A ``tf_keras.utils.SidecarEvaluator``; its ``start()`` ends with the checkpoint of max_steps, and without one never.

    Raises:
        BridgeError: There is no model_dir, or a setting is not in force.
    """
    known = _scope(model=model, validation_data=data)
    call = evaluator_call(config, _model_folder(config, "The evaluator"))
    made = make(call, known)
    settings = flatten(config)
    held = _in_force("evaluator", _differences(made, call, known), settings)
    check(settings, {name: value for name, value in held.items() if name in settings})
    return made


def _require_folder(config: ModernConfig, checkpoint: Any) -> None:
    saves = checkpoint is not None and (config.checkpoint.interval_steps or config.checkpoint.interval_secs)
    writing = [part.kind for part in config.callbacks if part.kind in TO_FOLDER and not part.arguments.get("log_dir")]
    needs = [*writing, *(part.kind for part in config.exporters), *(["Saving checkpoints"] if saves else [])]
    needs += ["summaries"] if config.summaries.update_freq or config.summaries.speed_freq else []
    for what in needs:
        _model_folder(config, what)


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
    for origin in _ORIGINS:
        if origin in differing:
            held |= _in_force(origin, differing[origin], settings)
    for name in LISTS:
        held[name] = tuple(
            ConfigPart(part.kind, {**part.arguments, **differing.get(f"{name}[{index}]", {})})
            for index, part in enumerate(getattr(config, name))
        )
    return held


def _held_by_model(config: ModernConfig, model: Any, start: int, arguments: Mapping[str, int]) -> dict[str, Any]:
    steps = getattr(model, "_steps_per_execution", None)
    held: dict[str, Any] = {"training.steps_per_execution": None if steps is None else int(steps.numpy())}
    reached = start + arguments.get("steps_per_epoch", 0) * arguments.get("epochs", 0)
    if max(reached, start) < (config.training.max_steps or 0):
        held["training.max_steps"] = reached
    return held


def _scope(**values: Any) -> dict[str, Any]:
    """Returns the values of the names in a call: TensorFlow as ``tf``, our callbacks and the given values."""
    return {**vars(callbacks), **values}


def _differences(made: Any, call: Call, known: Mapping[str, Any]) -> dict[str, Any]:
    """Compares a callback with the call that made it.

    Args:
        made: The callback.
        call: Call that made it.
        known: Scope of the call.

    Returns:
        Argument -> value that the callback, its timer or its checkpoint manager holds, if it is not the call's.
    """
    wanted = {name: value for one in call.nested() if isinstance(one, Call) for name, value in one.arguments.items()}
    plain = {name: make(value, known) for name, value in wanted.items() if not isinstance(value, Call | list)}
    found = {name: _held_value(made, name) for name in plain.keys() - _UNREAD}
    return {name: value for name, value in found.items() if value != plain[name]}


def _in_force(origin: str, differing: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that a callback has in force.

    Args:
        origin: Origin of the callback.
        differing: Arguments that the callback holds with another value.
        settings: Setting -> value that was asked for.
    """
    return {setting: differing.get(argument, settings.get(setting)) for setting, argument in _ORIGINS[origin].items()}


def _model_folder(config: ModernConfig, what: str) -> str:
    """Returns model_dir.

    Args:
        config: Modern configuration.
        what: Thing that needs the folder.

    Raises:
        BridgeError: The configuration has no model_dir.
    """
    if config.training.model_dir is None:
        raise BridgeError(f"{what} needs a folder.", expected="training.model_dir", fix="Set RunConfig(model_dir=...).")
    return config.training.model_dir


def _lacks(call: Call, known: Mapping[str, Any]) -> bool:
    return any(isinstance(one, Name) and one.dotted in known and known[one.dotted] is None for one in call.nested())


def _held_value(made: Any, name: str) -> Any:
    callbacks = getattr(made, "callbacks", None) or [None]
    for holder in (made, getattr(made, "timer", None), getattr(made, "manager", None), callbacks[-1]):
        for attribute in (name, f"_{name}"):
            if hasattr(holder, attribute):
                return getattr(holder, attribute)
    return None
