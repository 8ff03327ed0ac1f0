"""Trains three steps with each optimizer and writes losses and variables: python train.py FILE.json [NAME ...].

The script of TensorFlow 1 runs unchanged on 1.15.5, which recorded recorded.json, and on either path.
"""

import json
import sys
import tempfile

import numpy as np
import own_optimizers as own
import tensorflow as tf

STEPS = 3
RANDOM = np.random.RandomState(0)
X, W, TABLE = (RANDOM.normal(size=shape).astype(np.float32) for shape in ([12, 3], [3, 2], [5, 2]))
IDS = RANDOM.randint(0, 4, size=[12, 3])  # with duplicates; the last row has no gradient
Y = (X[:, :1] * X[:, 1:2]).astype(np.float32)
decayed = tf.contrib.opt.extend_with_decoupled_weight_decay

OPTIMIZERS = {
    "accumulating": lambda: own.Accumulating(tf.train.AdamOptimizer(0.05)),
    "accumulating_own": lambda: own.Accumulating(own.HeavyBall(0.05)),
    "averaging_adam": lambda: own.Averaging(tf.train.AdamOptimizer(0.05)),
    "averaging_own": lambda: own.Averaging(own.HeavyBall(0.05)),
    "centered_rms": lambda: own.CenteredRms(0.05, momentum=0.5),
    "cyclic": own.Cyclic,
    "decayed_adam": lambda: own.DecayedAdam(0.05),
    "decayed_heavy_ball": lambda: decayed(own.HeavyBall)(weight_decay=0.1, rate=0.05),
    "decayed_kernels": lambda: decayed(own.Kernels)(weight_decay=0.1),
    "factored": own.Factored,
    "factored_and_decayed": lambda: decayed(own.Factored)(weight_decay=0.1),
    "heavy_ball": lambda: own.HeavyBall(0.05),
    "kernels": own.Kernels,
    "layerwise": own.Layerwise,
    "lookahead": lambda: own.Lookahead(own.OnlyReference(0.1)),
    "maximal_adam": lambda: own.MaximalAdam(0.05),
    "moving_average_of_own": lambda: tf.contrib.opt.MovingAverageOptimizer(own.OnlyReference(0.1), 0.9),
    "only_reference": lambda: own.OnlyReference(0.1),
    "signs": own.Signs,
    "smaller_steps": lambda: own.SmallerSteps(0.2),
    "swapped": own.Swapped,
}


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X, "ids": IDS}, Y)).repeat().batch(4)


def model_fn(features, labels, mode, params):
    dense = tf.layers.dense(features["x"], 2, tf.tanh, kernel_initializer=tf.constant_initializer(W), name="dense")
    table = tf.get_variable("table", initializer=TABLE)
    rows = tf.reduce_mean(tf.nn.embedding_lookup(table, features["ids"]), axis=1)
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(dense * rows, axis=1, keepdims=True) - labels), name="loss")
    optimizer = OPTIMIZERS[params["optimizer"]]()
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    # Whether a step may change a variable before a gradient has read it is not what is asked; 1.15.5 left it open.
    gradients = tf.tuple(gradients)
    with tf.control_dependencies(gradients if "decayed" in params["optimizer"] else []):
        train_op = optimizer.apply_gradients(list(zip(gradients, variables)), global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class Losses(tf.train.SessionRunHook):
    """Keeps each step's loss."""

    def __init__(self):
        self.values = []

    def begin(self):
        self._loss = tf.get_default_graph().get_tensor_by_name("loss:0")

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.values.append(float(run_values.results))


def train(name):
    config = tf.estimator.RunConfig(tempfile.mkdtemp(), save_summary_steps=None, log_step_count_steps=None)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"optimizer": name})
    losses = Losses()
    estimator.train(input_fn, steps=STEPS, hooks=[losses])
    values = {key: estimator.get_variable_value(key).tolist() for key in estimator.get_variable_names()}
    return {"losses": losses.values, "variables": values}


if __name__ == "__main__":
    tf.logging.set_verbosity("ERROR")
    results = {name: train(name) for name in sys.argv[2:] or sorted(OPTIMIZERS)}
    with open(sys.argv[1], "w") as file:
        json.dump(results, file, indent=1, sort_keys=True)
