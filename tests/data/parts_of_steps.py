"""Trains and evaluates for numbers of steps that are no whole numbers; prints the global steps and the mean of the evaluated batches."""

import json
import tempfile

import tensorflow as tf

def input_fn():
    return tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).repeat().batch(1)

def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(weight - features))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"mean": tf.metrics.mean(features)})

tf.logging.set_verbosity(tf.logging.ERROR)
estimator = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
estimator.train(input_fn, steps=5 / 2)
steps = [int(estimator.get_variable_value("global_step"))]
estimator.train(input_fn, max_steps=9 / 2)
steps.append(int(estimator.get_variable_value("global_step")))
print(json.dumps(steps + [float(estimator.evaluate(input_fn, steps=5 / 2)["mean"])]))
