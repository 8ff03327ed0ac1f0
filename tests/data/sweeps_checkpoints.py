"""Trains into a folder, waits for its last checkpoint by tf.gfile, and evaluates each: ``sweeps_checkpoints.py MODEL_DIR``."""

import sys
import time

import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
X = np.random.RandomState(0).rand(64, 4).astype("float32")


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, X.sum(1, keepdims=True))).repeat(2).batch(16)


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, FOLDER, tf.estimator.RunConfig(save_checkpoints_steps=2))
estimator.train(input_fn, max_steps=6)
while not tf.gfile.Exists(FOLDER + "/model.ckpt-6.index"):
    time.sleep(0.1)
for index in sorted(tf.gfile.Glob(FOLDER + "/model.ckpt-*.index")):
    estimator.evaluate(input_fn, name=index.split("-")[-1].split(".")[0], checkpoint_path=index[: -len(".index")])
