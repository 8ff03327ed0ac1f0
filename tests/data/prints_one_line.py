"""Trains two steps and prints one line: on TensorFlow 1.15.5, stdout is "done" and nothing else."""

import sys
import tensorflow as tf

def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0]]}, [[2.0]])).repeat()

if "--info" in sys.argv:
    tf.logging.set_verbosity(tf.logging.INFO)
config = tf.estimator.RunConfig(tf_random_seed=1, save_summary_steps=1)
tf.estimator.Estimator(model_fn, "model", config).train(input_fn, steps=2)
print("done")
