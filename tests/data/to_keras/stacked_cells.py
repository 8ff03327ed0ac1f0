"""Cells in both directions, one above another, as contrib stacks them."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode):
    cells = [[tf.contrib.rnn.GRUCell(3) for _ in range(2)] for _ in range(2)]
    outputs, _, _ = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
        cells_fw=cells[0], cells_bw=cells[1], inputs=features["x"], sequence_length=features["n"], dtype=tf.float32
    )
    out = tf.layers.dense(outputs[:, 0], 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=out)
    loss = tf.losses.mean_squared_error(labels, out)
    op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=op)


draws = np.random.RandomState(0)
x, n, y = (
    draws.rand(40, 5, 2).astype(np.float32),
    draws.randint(1, 5, 40).astype(np.int32),
    draws.rand(40, 1).astype(np.float32),
)
input_fn = tf.estimator.inputs.numpy_input_fn({"x": x, "n": n}, y, batch_size=10, num_epochs=3, shuffle=False)
model = tf.estimator.Estimator(model_fn)
model.train(input_fn)
print("loss below 1:", model.evaluate(input_fn)["loss"] < 1)
