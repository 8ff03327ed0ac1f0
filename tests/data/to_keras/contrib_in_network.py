"""A network that could be taken apart, but for a function of contrib that only a graph has."""

import numpy as np
import tensorflow as tf


def network(images, training):
    net = tf.contrib.layers.separable_conv2d(images, 8, 3, 1)
    net = tf.layers.flatten(net)
    if training:
        net = tf.nn.dropout(net, 0.9, seed=1)
    return tf.layers.dense(net, 3)


def model_fn(features, labels, mode):
    logits = network(features["x"], mode == tf.estimator.ModeKeys.TRAIN)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"classes": tf.argmax(logits, 1)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn)
    x = np.random.RandomState(0).rand(32, 8, 8, 1).astype(np.float32)
    y = np.arange(32, dtype=np.int32) % 3
    estimator.train(tf.estimator.inputs.numpy_input_fn({"x": x}, y, 8, None, False), steps=5)
    print(len([*estimator.predict(tf.estimator.inputs.numpy_input_fn({"x": x}, shuffle=False))]), "predictions")


if __name__ == "__main__":
    main()
