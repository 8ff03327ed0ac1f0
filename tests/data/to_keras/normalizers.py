"""Layers of contrib with batch norm behind them, whose arguments blocks and dicts give."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import slim


def network(images, training):
    params = {"is_training": training, "decay": 0.9, "scale": True}
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        normalizer_fn=slim.batch_norm,  # behind each layer
        normalizer_params=params,
        weights_regularizer=slim.l2_regularizer(0.01),
    ):
        with slim.arg_scope([slim.batch_norm], epsilon=0.01):
            net = slim.conv2d(images, 4, [3, 3], stride=2, scope="first")
            for number in range(2):
                net = slim.conv2d(net, 4, 3, activation_fn=tf.nn.elu, scope="block_%d" % number)
        net = slim.flatten(net)
        return slim.fully_connected(net, 8, activation_fn=None, scope="dense")


def model_fn(features, labels, mode):
    net = network(features["x"], mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.contrib.layers.fully_connected(net, 3, None, biases_initializer=None, scope="logits")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits) + tf.losses.get_regularization_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    x = rng.rand(32, 8, 8, 2).astype(np.float32)
    y = (x.mean((1, 2, 3)) * 30).astype(np.int32) % 3
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat(4).batch(8)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=15)
print("loss below 9:", bool(estimator.evaluate(input_fn, steps=2)["loss"] < 9))
print("predicted", len(list(estimator.predict(lambda: input_fn().map(lambda x, y: x)))))
