"""Small models that are fitted as a configuration says, and what a fit leaves behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.config.model import ModernConfig
from estimator_bridge.compat.config.settings import flatten, unflatten
from estimator_bridge.modern.config.fit import compile_arguments, prepare_fit

Seen = dict[str, bool]
"""Row of a table, or what else is seen -> True if it is seen at work."""


class Fitted(NamedTuple):
    """A model after its fit, and the step that it had reached then."""

    model: Any
    step: int
    config: ModernConfig
    history: Any
    in_force: dict[str, Any]

    @property
    def folder(self) -> Path:
        return Path(self.config.training.model_dir or "")

    def files(self) -> list[str]:
        return sorted(str(Path(at, name).relative_to(self.folder)) for at, _, names in os.walk(self.folder) for name in names)

    def events(self, inner: str = "") -> list[tuple[str, int]]:
        """Tag and step of each value in the event files below a folder of the model's."""
        found: list[tuple[str, int]] = []
        for at, _, names in os.walk(self.folder / inner):
            for name in names:
                if "tfevents" in name:
                    for event in tf.compat.v1.train.summary_iterator(str(Path(at, name))):
                        found += [(value.tag, event.step) for value in event.summary.value]
        return found


class Fits:
    """Fits one model again and again, which is traced once; only arguments of compile() need another."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        x = np.ones([400, 2], np.float32)
        y = x.sum(1, keepdims=True)
        self._data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4).repeat()
        self.check = tf.data.Dataset.from_tensor_slices((x[:8], y[:8])).batch(4)
        self.model = _compiled()

    def __call__(self, settings: dict[str, Any], start: int = 0, validation: Any = None, **more: Any) -> Fitted:
        """Fits from step ``start`` on, with further arguments for fit()."""
        folder = tempfile.mkdtemp(dir=self.folder)
        config = unflatten({"training.model_dir": folder} | settings)
        given = compile_arguments(config)
        model = _compiled(**given) if given else self.model
        model.optimizer.iterations.assign(start)
        checkpoint = tf.train.Checkpoint(model=model)
        made = prepare_fit(config, flatten(config), model, checkpoint, validation)
        arguments = {"steps_per_epoch": 20, "epochs": 2, **made.arguments, **more}
        history = model.fit(self._data, verbose=0, callbacks=made.callbacks, **arguments)
        return Fitted(model, int(model.optimizer.iterations), config, history, dict(made.in_force))


def settings_of(table: Any, name: str) -> dict[str, Any]:
    """What a row's first example becomes."""
    rule = table[name]
    return dict(rule.convert(rule.examples[0]).settings)


def _compiled(**given: Any) -> Any:
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[2])])
    model.compile("sgd", "mse", **given)
    model.optimizer.build(model.trainable_variables)
    return model
