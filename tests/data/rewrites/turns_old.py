"""An Estimator: an LSTM cell in dynamic_rnn with dropout of its inputs and outputs in each turn."""

import numpy as np
import tensorflow as tf


def batches():
    random = np.random.RandomState(0)
    words = random.randn(96, 5, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"words": words}, words[:, :, 0].sum(1, keepdims=True))).batch(16)


def model_fn(features, labels, mode):
    cell = tf.nn.rnn_cell.LSTMCell(7, name="lstm_cell")
    if mode == tf.estimator.ModeKeys.TRAIN:
        cell = tf.nn.rnn_cell.DropoutWrapper(cell, input_keep_prob=0.7, output_keep_prob=0.6)
    outputs, _ = tf.nn.dynamic_rnn(cell, features["words"], dtype=tf.float32)
    prediction = tf.layers.dense(tf.reduce_mean(outputs, 1), 1, name="out")
    loss = tf.losses.mean_squared_error(labels, prediction)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, {"p": prediction}, loss, train_op)


tf.estimator.Estimator(model_fn).train(batches)
