"""Names from tf.contrib and tensorflow.python under several spellings, contrib's initial values, and batch norm whose averages nothing updates."""

import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib import rnn
from tensorflow.contrib.layers import l2_regularizer, variance_scaling_initializer, xavier_initializer
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import math_ops as maths
from tensorflow.python.ops.nn_ops import relu
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.training import training_util


def model_fn(features, labels, mode):
    logging.info("%s", mode)
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = slim.conv2d(features["x"], 4, 3, weights_initializer=xavier_initializer(uniform=False))
    net = tf.layers.batch_normalization(maths.multiply(net, 3.0), momentum=0.8, training=training)
    net = slim.batch_norm(net, is_training=training)
    net = slim.dropout(slim.flatten(net), 0.8, is_training=training)
    net = tf.layers.dense(net, 6, kernel_initializer=variance_scaling_initializer(), kernel_regularizer=l2_regularizer(0.01))
    cell = rnn.MultiRNNCell([rnn.GRUCell(5), rnn.BasicLSTMCell(4)])
    outputs, _ = tf.nn.dynamic_rnn(cell, relu(array_ops.reshape(net, [-1, 3, 2])), dtype=tf.float32)
    logits = slim.fully_connected(outputs[:, -1], 3, activation_fn=None)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    variables = tf.trainable_variables()
    gradients = tf.gradients(loss, variables, colocate_gradients_with_ops=True)
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_op = tf.train.GradientDescentOptimizer(0.1).apply_gradients(
        zip(gradients, variables), training_util.get_global_step()
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    images = draws.rand(40, 6, 6, 2).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"x": images}, draws.randint(0, 3, 40)))
    return data.apply(tf.contrib.data.ignore_errors()).apply(tf.contrib.data.batch_and_drop_remainder(8))


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
print("step", estimator.evaluate(input_fn)["global_step"])
