"""A recurrent TensorFlow 1 network with dropout in its loop and in branches."""

import numpy as np, tensorflow as tf

def input_fn():
    x = np.random.RandomState(0).rand(64, 5, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, (x.sum((1, 2)) > 7.5).astype(np.int32))).repeat().batch(16)

def model_fn(features, labels, mode):
    cells = [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(4), output_keep_prob=0.8) for _ in range(2)]
    output, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), features, dtype=tf.float32)
    training = tf.placeholder_with_default(True, [])
    hidden = tf.cond(training, lambda: tf.nn.dropout(output[:, -1], rate=0.3), lambda: output[:, -1])
    is_even = tf.equal(tf.train.get_global_step() % 2, 0)
    hidden = tf.cond(is_even, lambda: tf.nn.dropout(hidden, rate=0.1), lambda: tf.nn.dropout(hidden, rate=0.2))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(hidden, 2))
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

tf.estimator.Estimator(model_fn).train(input_fn, steps=30)
