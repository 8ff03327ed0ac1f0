"""A hook that counts, beside one that logs; both train as before, and the count is that of the steps."""

import numpy as np
import tensorflow as tf


class Counter(tf.estimator.SessionRunHook):
    """Counts the steps, and the trainings that end."""

    def __init__(self):
        self.steps = 0
        self.ended = False

    def before_run(self, run_context):
        self.inside = True

    def after_run(self, run_context, run_values):
        self.steps += self.inside

    def end(self, session):
        self.ended = True


def make_model_fn(units):
    rate = 0.1 / units

    def model_fn(features, labels, mode):
        """A model that knows what the function around it knows."""
        outputs = tf.layers.dense(features["x"], units)
        loss = tf.losses.mean_squared_error(labels, outputs)
        train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def input_fn():
    values = np.random.RandomState(0).rand(40, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": values}, values[:, :2])).batch(8)


counter = Counter()
log = tf.estimator.LoggingTensorHook({}, every_n_iter=2)
estimator = tf.estimator.Estimator(make_model_fn(2))
estimator.train(input_fn, hooks=[counter, log, tf.train.StopAtStepHook(num_steps=3)])
estimator.train(input_fn, hooks=[counter, tf.train.StopAtStepHook(last_step=5)])
tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(input_fn, max_steps=7, hooks=[counter]),
    tf.estimator.EvalSpec(input_fn, steps=1),
)
print(counter.steps, counter.ended)
