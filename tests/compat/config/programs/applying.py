"""Applies configurations in a TensorFlow of their own, and says what became of each setting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge import legacy
from estimator_bridge.compat.config import to_modern
from estimator_bridge.compat.config.live_objects import from_objects, settings_of_strategy
from estimator_bridge.compat.config.model import ConfigPart
from estimator_bridge.compat.config.output import callbacks
from estimator_bridge.compat.config.output.python import to_python
from estimator_bridge.compat.config.reading.legacy_json import legacy_of
from estimator_bridge.compat.config.settings import flatten, from_dict, unflatten
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.config.apply import Applied, apply
from estimator_bridge.modern.config.fit import compile_arguments
from estimator_bridge.runtime.json_positions import read_object


def what_became_of(trees: dict[str, Any]) -> dict[str, str]:
    """Returns for each setting "in force", why it has no effect, or its refusal; the trees are configurations that have it."""
    made = {name: _applied_or_refused(tree) for name, tree in trees.items()}
    return {name: one if isinstance(one, str) else _accounted(one).get(name, "in force") for name, one in made.items()}


def ignored_by_a_fit(model_dir: str) -> dict[str, str]:
    """Returns what is said where TensorFlow, or a callback, ignores an argument."""
    saving = {"training.model_dir": model_dir, "checkpoint.interval_steps": 5}
    every_hours = saving | {"checkpoint.keep_every_n_hours": 2.0}
    cases = (
        ("keep_checkpoint_every_n_hours", tf.train, "CheckpointManager", every_hours),
        ("steps_per_execution", tf, "ones", {"training.steps_per_execution": 4}),
        ("last_step", callbacks, "StopAtStep", {"training.max_steps": 4}),
    )
    return {name: _said_where_ignored(name, target, attribute, settings) for name, target, attribute, settings in cases}


def without_effect() -> dict[str, str]:
    """Returns the reasons of a fit that has no checkpoint to save and no data to evaluate on."""
    parts = (
        ConfigPart("SaveCheckpoint", {"directory": "d", "every_steps": 5}),
        ConfigPart("EvaluateEvery", {"every_steps": 5, "steps": 1}),
    )
    settings = {"callbacks": parts, "checkpoint.interval_steps": 5, "evaluation.steps": 1, "training.model_dir": "m"}
    return dict(apply(unflatten(settings)).fit(_model()).without_effect)


def drawn(*seeds: int) -> list[list[float]]:
    """Returns the first numbers that each seed draws."""
    numbers = []
    for seed in seeds:
        apply(unflatten({"training.random_seed": seed}))
        numbers.append(tf.random.uniform([3]).numpy().tolist())
    return numbers


def options_that_come_back(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the settings read from the strategy made, from the printed one, and from a RunConfig that has it."""
    legacy.install()
    config = unflatten(settings)
    made = apply(config).strategy
    printed: dict[str, Any] = {}
    exec(to_python(config), printed)
    found = [
        unflatten(settings_of_strategy(made)),
        unflatten(settings_of_strategy(printed["strategy"])),
        to_modern(from_objects(tf.estimator.RunConfig(train_distribute=made)))[0],
    ]
    return [{name: value for name, value in flatten(one).items() if name in flatten(config)} for one in found]


def strategies_in_one_process(jobs: dict[str, Any]) -> dict[str, list[Any]]:
    """Returns name and replicas of each RunConfig's strategy, or "refused" and why."""
    said: dict[str, list[Any]] = {}
    for name, job in jobs.items():
        config, _ = to_modern(legacy_of(read_object(json.dumps(job), "run.json")))
        settings = {key: value for key, value in flatten(config).items() if not key.startswith(("summaries.", "checkpoint."))}
        try:
            applied = apply(unflatten(settings | {"devices.logical_cpus": 2}))
            said[name] = [type(applied.strategy).__name__, applied.strategy.num_replicas_in_sync]
        except BridgeError as error:
            said[name] = ["refused", str(error)]
    return said


def _applied_or_refused(tree: dict[str, Any]) -> Applied | str:
    try:
        return apply(from_dict(tree))
    except BridgeError as error:
        return f"refused: {error}"


def _accounted(applied: Applied) -> Mapping[str, str]:
    """Where each setting asked for has gone, once there was a fit; all are accounted for."""
    asked = set(flatten(applied.config))
    where = dict.fromkeys(applied.in_force, "in force") | dict(applied.without_effect)
    assert asked == set(where) | applied.pending, (asked, where, applied.pending)
    with applied.strategy.scope():
        model = _model(**compile_arguments(applied.config))
    data = tf.data.Dataset.from_tensors((tf.ones([1, 1]),) * 2)
    fitted = applied.fit(model, tf.train.Checkpoint(model=model), data)
    where |= dict.fromkeys(fitted.in_force, "in force") | dict(fitted.without_effect)
    assert asked <= set(where), asked - set(where)
    return where


def _said_where_ignored(name: str, target: Any, attribute: str, settings: dict[str, Any]) -> str:
    kept = getattr(target, attribute)
    model = _model()

    def without(*given: Any, **named: Any) -> Any:
        return kept(*given, **{key: value for key, value in named.items() if key != name})

    setattr(target, attribute, without)
    try:
        apply(unflatten(settings)).fit(model, tf.train.Checkpoint(model=model), None)
    except BridgeError as error:
        return str(error)
    finally:
        setattr(target, attribute, kept)
    return ""


def _model(**arguments: Any) -> Any:
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[1])])
    model.compile("sgd", "mse", **arguments)
    return model
