"""What the installed TensorFlow and tensorflow-estimator really have."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.distribute_config import DistributeConfig

from estimator_bridge import legacy

v1 = tf.compat.v1
DEFAULTS = (
    "save_summary_steps",
    "save_checkpoints_secs",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
)


def names() -> dict[str, Any]:
    """Names of everything that a table has rows about, by table."""
    legacy.install()
    from tensorflow_estimator.python.estimator import run_config

    estimator = tf.estimator
    exporters = [getattr(estimator, name) for name in dir(estimator) if "Exporter" in name]
    makers = [cls for cls in exporters if cls.__name__ != "Exporter"]
    properties = {*_properties(estimator.RunConfig), *_properties(v1.estimator.tpu.RunConfig)}
    replaceable = run_config._DEFAULT_REPLACEABLE_LIST
    return {
        "run_config": sorted(properties | set(replaceable) | set(_arguments(estimator.RunConfig))),
        "tpu_config": list(v1.estimator.tpu.TPUConfig._fields),
        "distribute_config": list(DistributeConfig._fields),
        "train_spec": list(estimator.TrainSpec._fields),
        "eval_spec": list(estimator.EvalSpec._fields),
        "exporters": [cls.__name__ for cls in exporters],
        "exporter_arguments": sorted({name for cls in makers for name in _arguments(cls.__init__)}),
        "hooks": sorted(_hooks()),
        "early_stopping": [name for name in dir(estimator.experimental) if name.endswith("_hook")],
        "partitioners": [name for name in dir(v1) if "partition" in name and name != "dynamic_partition"],
        "defaults": {name: getattr(estimator.RunConfig(), name) for name in DEFAULTS},
    }


def _properties(cls: type) -> list[str]:
    return [name for name in dir(cls) if isinstance(getattr(cls, name), property)]


def _arguments(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls", "args", "kwargs")]


def _hooks() -> set[str]:
    """Public names of hooks and of listeners to checkpoints."""
    hooks: set[str] = set()
    seen: set[int] = set()

    def walk(module: ModuleType, depth: int) -> None:
        if id(module) in seen or depth > 5:
            return
        seen.add(id(module))
        for name in dir(module):
            value = None if name.startswith("_") else _value(module, name)
            if inspect.isclass(value) and issubclass(value, (v1.train.SessionRunHook, v1.train.CheckpointSaverListener)):
                hooks.add(name)
            elif inspect.ismodule(value) and "tensorflow" in value.__name__ and "keras" not in value.__name__:
                walk(value, depth + 1)

    walk(tf, 0)
    walk(tf.estimator.experimental, 4)
    return hooks


def _value(module: ModuleType, name: str) -> Any:
    """A module's attribute; None if it cannot be imported."""
    try:
        return getattr(module, name)
    except (AttributeError, ImportError):
        return None
