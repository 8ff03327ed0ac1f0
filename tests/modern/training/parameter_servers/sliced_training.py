"""Trains a partitioned table by ``train_and_evaluate``: ``sliced_training.py MODEL_DIR STEPS``."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf


def model_fn(features, labels, mode):
    table = tf.get_variable("table", [20, 4], partitioner=tf.fixed_size_partitioner(4))
    rows = tf.reduce_mean(tf.nn.embedding_lookup(table, features["ids"]), 1)
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(rows, 1))
    step = tf.train.get_or_create_global_step()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.AdamOptimizer(0.05).minimize(loss, step))


def input_fn():
    ids = np.arange(40).reshape([8, 5]) % 20
    return tf.data.Dataset.from_tensor_slices(({"ids": ids}, np.ones([8, 1], np.float32))).repeat().batch(4)


config = tf.estimator.RunConfig(sys.argv[1], tf_random_seed=1, save_summary_steps=None)
train = tf.estimator.TrainSpec(input_fn, max_steps=int(sys.argv[2]))
tf.estimator.train_and_evaluate(tf.estimator.Estimator(model_fn, config=config), train, tf.estimator.EvalSpec(input_fn, steps=1))
