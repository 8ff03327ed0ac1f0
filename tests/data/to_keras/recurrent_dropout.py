"""Dropout in the loops of dynamic_rnn and of the script, in a function of its own."""

import numpy as np
import tensorflow as tf


def encode(x, lengths, training):
    kept = {"input_keep_prob": 0.8, "output_keep_prob": 0.7, "state_keep_prob": 0.9} if training else {}
    cells = [tf.nn.rnn_cell.LSTMCell(6), tf.nn.rnn_cell.GRUCell(5)]
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.DropoutWrapper(one, **kept) for one in cells])
    outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)

    def add(turn, total):
        return turn + 1, total + tf.nn.dropout(outputs[:, turn], 0.5 if training else 1.0)

    _, total = tf.while_loop(lambda turn, _: turn < 3, add, [0, tf.zeros_like(outputs[:, 0])])
    return state[-1] + total


def model_fn(features, labels, mode):
    net = encode(features["x"], features["n"], mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.layers.dense(net, 2)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    random = np.random.RandomState(0)
    x, lengths = random.rand(64, 7, 4).astype(np.float32), random.randint(2, 8, 64)
    y = (x[:, 0, 0] > 0.5).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x, "n": lengths}, y)).repeat().batch(8)


estimator = tf.estimator.Estimator(model_fn, "model")
estimator.train(input_fn, steps=20)
print("loss below 1:", bool(estimator.evaluate(input_fn, steps=5)["loss"] < 1))
