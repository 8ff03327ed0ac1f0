"""Layers of tf.contrib, and momentum with a learning rate that decays."""

import numpy as np
import tensorflow as tf
import tensorflow.contrib.layers as layers


def model_fn(features, labels, mode):
    regularizer = tf.contrib.layers.l2_regularizer(scale=0.01)
    net = tf.contrib.layers.conv2d(features["x"], 8, [3, 3], stride=2, weights_regularizer=regularizer)
    net = layers.max_pool2d(net, 2)
    net = layers.convolution2d(net, 8, 3, activation_fn=None, scope="second")
    net = layers.flatten(net)
    net = layers.fully_connected(net, 10)
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = layers.batch_norm(9 * net, 0.9, is_training=training, updates_collections=None)
    logits = layers.fully_connected(net, num_outputs=3, activation_fn=None)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits) + tf.losses.get_regularization_loss()
    rate = tf.train.exponential_decay(0.1, tf.train.get_global_step(), 3, 0.5)
    train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    images = draws.rand(40, 9, 9, 2).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": images}, draws.randint(0, 3, 40))).batch(8)


config = tf.ConfigProto()
config.gpu_options.allow_growth = True  # if there is a GPU
config.allow_soft_placement = True
estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(session_config=config))
estimator.train(input_fn)
print("step", estimator.evaluate(input_fn)["global_step"])
