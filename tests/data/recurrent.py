"""A recurrent TensorFlow 1 network with dropout in its loop and in branches; the first argument names the loop."""

import sys

import numpy as np, tensorflow as tf

def input_fn():
    x = np.random.RandomState(0).rand(64, 5, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, (x.sum((1, 2)) > 7.5).astype(np.int32))).repeat().batch(16)

def cell(size=3, **rates):
    return tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(4), input_size=tf.TensorShape([size]), dtype=tf.float32, **rates)

def dynamic(x, **rates):
    cells = tf.nn.rnn_cell.MultiRNNCell([cell(**rates), cell(4, **rates)])
    return tf.nn.dynamic_rnn(cells, x, dtype=tf.float32)[0][:, -1]

def bidirectional(x):
    both = tf.nn.bidirectional_dynamic_rnn(cell(output_keep_prob=0.7), cell(state_keep_prob=0.7), x, dtype=tf.float32)[0]
    return tf.concat([output[:, -1] for output in both], 1)

def loop(x, parallel_iterations):
    def body(i, net):
        return i + 1, net + tf.nn.dropout(x[:, i], rate=0.4)
    return tf.while_loop(lambda i, _: i < 5, body, [0, tf.zeros_like(x[:, 0])], parallel_iterations=parallel_iterations)[1]

LOOPS = {
    "output": lambda x: dynamic(x, output_keep_prob=0.8),
    "input and state": lambda x: dynamic(x, input_keep_prob=0.9, state_keep_prob=0.8),
    "variational": lambda x: dynamic(x, input_keep_prob=0.9, output_keep_prob=0.8, variational_recurrent=True),
    "bidirectional": bidirectional,
    "one at a time": lambda x: loop(x, 1),
    "ten at a time": lambda x: loop(x, 10),
}

def model_fn(features, labels, mode):
    output = LOOPS[sys.argv[1]](features)
    training = tf.placeholder_with_default(True, [])
    hidden = tf.cond(training, lambda: tf.nn.dropout(output, rate=0.3), lambda: output)
    is_even = tf.equal(tf.train.get_global_step() % 2, 0)
    hidden = tf.cond(is_even, lambda: tf.nn.dropout(hidden, rate=0.1), lambda: tf.nn.dropout(hidden, rate=0.2))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(hidden, 2))
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

session_config = tf.ConfigProto(allow_soft_placement=True)
session_config.graph_options.rewrite_options.arithmetic_optimization = 2  # off
tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(session_config=session_config)).train(input_fn, steps=12)
