"""The steps at which real hooks of tf.estimator stop, and those at which callbacks do."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from estimator_bridge import legacy
from estimator_bridge.compat.config import ModernConfig
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.compat.config.tables import EARLY_STOPPING
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.modern.config.fit import prepare_fit

v1 = tf.compat.v1

Case = tuple[str, dict[str, Any], list[tuple[int, float]], list[float]]
"""Name of a hook, its arguments, evaluations of a run before (step, metric), and the metrics of this run's evaluations."""


class Evaluating(tf.compat.v1.train.SessionRunHook):
    """Makes a step of the training, and writes the next evaluation of it after so many steps."""

    def __init__(self, folder: str, every: int, values: list[float], train: Any) -> None:
        self._folder, self._every, self._values, self._train, self._step = folder, every, values, train, 0

    def before_run(self, context: Any) -> None:
        context.session.run(self._train)  # a run of its own: in one with it, a hook may read the step from before it

    def after_run(self, context: Any, values: Any) -> None:
        self._step += 1
        if self._step % self._every == 0:
            _write_evaluation(self._folder, self._step, self._values[self._step // self._every - 1])


def steps_of_hooks(every: int, steps: int, cases: list[Case]) -> list[int]:
    """Steps at which tf.estimator's hooks stop a training of so many steps, with an evaluation every so many."""
    legacy.install()
    return [_stopped_by_hook(every, steps, *case) for case in cases]


def steps_of_callbacks(every: int, steps: int, cases: list[Case]) -> list[int]:
    """Steps at which our callbacks stop the same training."""
    apply(ModernConfig())
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[1])])
    model.compile("sgd", "mse")
    return [_stopped_by_callback(model, every, steps, *case) for case in cases]


def _stopped_by_hook(
    every: int, steps: int, name: str, arguments: dict[str, Any], before: list[tuple[int, float]], values: list[float]
) -> int:
    folder = tempfile.mkdtemp()
    for step, value in before:
        _write_evaluation(folder, step, value)
    estimator = tf.estimator.Estimator(lambda features: None, model_dir=folder)
    make = getattr(tf.estimator.experimental, name)
    hook = make(estimator, "metric", eval_dir=folder, run_every_secs=None, run_every_steps=1, **arguments)
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        evaluate = Evaluating(folder, every, values, v1.assign_add(step, 1))
        with v1.train.SingularMonitoredSession(hooks=[evaluate, v1.train.StopAtStepHook(last_step=steps), hook]) as session:
            while not session.should_stop():
                reached = int(session.run(step))
    return reached


def _write_evaluation(folder: str, step: int, value: float) -> None:
    with tf.Graph().as_default():
        writer = v1.summary.FileWriter(folder, filename_suffix=f".{step}")
        writer.add_summary(v1.Summary(value=[v1.Summary.Value(tag="metric", simple_value=value)]), step)
        writer.close()


class Given(tf_keras.callbacks.Callback):
    """Gives each epoch its metric."""

    def __init__(self, values: list[float]) -> None:
        super().__init__()
        self._values = values

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs["val_metric"] = self._values[epoch]


def _stopped_by_callback(
    model: Any,
    every: int,
    steps: int,
    name: str,
    arguments: dict[str, Any],
    before: list[tuple[int, float]],
    values: list[float],
) -> int:
    folder = tempfile.mkdtemp()
    with tf.summary.create_file_writer(folder).as_default():
        for step, value in before:
            tf.summary.write("metric", tf.constant(value), step)
    convert = EARLY_STOPPING[name].convert
    assert convert is not None
    settings = convert({"metric_name": "metric", "eval_dir": folder, "run_every_steps": 1, **arguments}).settings
    model.optimizer.iterations.assign(0)
    config = unflatten(dict(settings) | {"checkpoint.interval_steps": every, "training.max_steps": steps})
    made = prepare_fit(config, ("callbacks", "training.max_steps"), model, None, None)
    data = tf.data.Dataset.from_tensors((np.zeros([1, 1], np.float32),) * 2).repeat()
    model.fit(data, callbacks=[Given(values), *made.callbacks], verbose=0, **made.arguments)
    return int(model.optimizer.iterations)
