"""Early stopping: the step at which real hooks of tf.estimator stop, and the one at which the callbacks do."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.forked_programs import Run, observes

EVERY, STEPS = 5, 40  # evaluations every so many steps, of a training of so many

LEGACY = """
import json, sys
from estimator_bridge import legacy
legacy.install()
import tensorflow as tf
v1 = tf.compat.v1
every, steps, cases = json.loads(sys.argv[1])
class Evaluate(v1.train.SessionRunHook):
    def __init__(self, folder, values, train):
        self.folder, self.values, self.train, self.step = folder, values, train, 0
    def before_run(self, context):
        context.session.run(self.train)  # a run of its own: in one with it, a hook may read the step from before it
    def after_run(self, context, values):
        self.step += 1
        if self.step % every == 0:
            evaluation(self.folder, self.step, self.values[self.step // every - 1])
def evaluation(folder, step, value):
    with tf.Graph().as_default():
        writer = v1.summary.FileWriter(folder, filename_suffix=f".{step}")
        writer.add_summary(v1.Summary(value=[v1.Summary.Value(tag="metric", simple_value=value)]), step)
        writer.close()
def stopped(name, arguments, before, values, folder):
    for step, value in before:
        evaluation(folder, step, value)
    estimator = tf.estimator.Estimator(lambda features: None, model_dir=folder)
    make = getattr(tf.estimator.experimental, name)
    hook = make(estimator, "metric", eval_dir=folder, run_every_secs=None, run_every_steps=1, **arguments)
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        evaluate = Evaluate(folder, values, v1.assign_add(step, 1))
        with v1.train.SingularMonitoredSession(hooks=[evaluate, v1.train.StopAtStepHook(last_step=steps), hook]) as session:
            while not session.should_stop():
                reached = int(session.run(step))
    return reached
import tempfile
print(json.dumps([stopped(*case, tempfile.mkdtemp()) for case in cases]))
"""

MODERN = """
import json, sys, tempfile
from estimator_bridge.compat.config import ModernConfig
from estimator_bridge.modern.config.apply import apply
from estimator_bridge.modern.config.fit import prepare_fit
from estimator_bridge.compat.config.settings import unflatten
from estimator_bridge.compat.config.tables import EARLY_STOPPING
import numpy as np
import tensorflow as tf
import tf_keras
every, steps, cases = json.loads(sys.argv[1])
apply(ModernConfig())
class Given(tf_keras.callbacks.Callback):
    def __init__(self, values):
        super().__init__()
        self.values = values
    def on_epoch_end(self, epoch, logs=None):
        logs["val_metric"] = self.values[epoch]
model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=[1])])
model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensors((np.zeros([1, 1], np.float32),) * 2).repeat()
def stopped(name, arguments, before, values, folder):
    with tf.summary.create_file_writer(folder).as_default():
        for step, value in before:
            tf.summary.write("metric", tf.constant(value), step)
    settings = EARLY_STOPPING[name].convert({"metric_name": "metric", "eval_dir": folder, "run_every_steps": 1, **arguments}).settings
    model.optimizer.iterations.assign(0)
    config = unflatten(dict(settings) | {"checkpoint.interval_steps": every, "training.max_steps": steps})
    made = prepare_fit(config, ("callbacks", "training.max_steps"), model, None, None)
    model.fit(data, callbacks=[Given(values), *made.callbacks], verbose=0, **made.arguments)
    return int(model.optimizer.iterations)
print(json.dumps([stopped(*case, tempfile.mkdtemp()) for case in cases]))
"""

NAMES = {
    "early_stopping.stop_if_no_increase_hook": "max_steps_without_increase",
    "early_stopping.stop_if_no_decrease_hook": "max_steps_without_decrease",
    "early_stopping.stop_if_higher_hook": "threshold",
    "early_stopping.stop_if_lower_hook": "threshold",
}


def cases() -> list[tuple[str, dict[str, Any], list[tuple[int, float]], list[float]]]:
    """Metrics that rise, fall and stay, with and without min_steps, after a run of before or none."""
    choose = random.Random(7)
    made = []
    for row, argument in NAMES.items():
        for index in range(4):
            limit: float = choose.choice([3.0, 7.0]) if argument == "threshold" else choose.choice([5, 7, 10, 15, 20])
            arguments = {argument: limit, "min_steps": choose.choice([0, 5, 12, 30])}
            before = [(1, 5.0), (3, 4.0)] if index % 3 == 2 else []
            values = [float(choose.randint(2, 8)) for _ in range(STEPS // EVERY)]
            made.append((row.partition(".")[2], arguments, before, values))
    return made


@observes(*NAMES)
def test_callbacks_stop_at_the_step_at_which_the_hooks_do(run: Run) -> None:
    asked = json.dumps([EVERY, STEPS, cases()])
    real = run(LEGACY, asked)
    assert run(MODERN, asked) == real
    assert len(set(real)) > 3
    assert STEPS in real
