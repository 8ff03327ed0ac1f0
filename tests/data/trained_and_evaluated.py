"""Trains 30 steps with train_and_evaluate, and prints its task."""

import sys
import numpy as np
import tensorflow as tf

def input_fn():
    x = np.arange(16, dtype=np.float32).reshape(8, 2)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).repeat().batch(4)

def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.GradientDescentOptimizer(0.001).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, None, loss, train_op)

config = tf.estimator.RunConfig(sys.argv[1])
print("task", config.task_type, config.task_id, "of", config.num_worker_replicas, "and", config.num_ps_replicas)
train = tf.estimator.TrainSpec(input_fn, max_steps=30)
estimator = tf.estimator.Estimator(model_fn, config=config)
tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(input_fn, steps=1))
