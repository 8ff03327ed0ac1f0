"""A model function that stays whole and trains before anything else: collections that are named, averages, and values of other variables."""

import os

import numpy as np
import tensorflow as tf


def model_fn(
    features,  # of five numbers
    labels,
    mode,
    config,  # of the run
):
    """A linear model with the average of a variable that does not change, and with a copy of the first weights."""
    assert os.path.isdir(config.model_dir)
    both = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.TRAINABLE_VARIABLES]
    weights = tf.get_variable("weights", [5, 1], initializer=tf.ones_initializer(), collections=both)
    first = tf.Variable(weights.initialized_value(), trainable=False, name="first")
    target = tf.Variable(tf.fill([3], 2.0), trainable=False, name="target")
    average = tf.train.ExponentialMovingAverage(0.5)
    averaged = average.apply([target])
    predicted = tf.matmul(features, weights)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predicted)
    loss = tf.reduce_mean(tf.square(predicted - labels))
    loss += 0.1 * tf.add_n([tf.reduce_sum(one) for one in tf.trainable_variables()])
    if mode == tf.estimator.ModeKeys.EVAL:
        values = {"weights": weights, "first": first, "average": average.average(target)}
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops={name: tf.metrics.mean(one) for name, one in values.items()}
        )
    step = tf.train.get_global_step()
    train_op = tf.group(averaged, tf.train.GradientDescentOptimizer(0.1).minimize(loss, step))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def examples():
    """Returns 64 examples."""
    draw = np.random.RandomState(1)
    return draw.rand(64, 5).astype("float32"), draw.rand(64, 1).astype("float32")


def input_fn():
    """Returns the examples in batches of 16."""
    return tf.data.Dataset.from_tensor_slices(examples()).batch(16)


def main():
    """Trains and evaluates."""
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=4)
    found = estimator.evaluate(input_fn)
    print(found)
    print("metrics:", sorted(found))


if __name__ == "__main__":
    main()
