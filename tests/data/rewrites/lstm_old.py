"""An Estimator: a TensorFlow 1 LSTM cell in dynamic_rnn, and gradient clipping."""

import sys

import numpy as np
import tensorflow as tf


def batches():
    random = np.random.RandomState(0)
    words = random.randn(96, 5, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"words": words}, words[:, :, 0].sum(1, keepdims=True))).batch(16)


def model_fn(features, labels, mode):
    cell = tf.nn.rnn_cell.LSTMCell(7, forget_bias=float(sys.argv[1]) if sys.argv[1:] else 1.0, name="lstm_cell")
    if sys.argv[2:]:  # of outputs that nothing reads
        cell = tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=float(sys.argv[2]))
    _, state = tf.nn.dynamic_rnn(cell, features["words"], dtype=tf.float32)
    prediction = tf.layers.dense(state.h, 1, name="out")
    loss = tf.losses.mean_squared_error(labels, prediction)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, {"p": prediction}, loss, train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: batches().repeat(2))
estimator.evaluate(batches)
