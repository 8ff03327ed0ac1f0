"""An object that makes layers of Keras each time it is called, in loops and functions; predictions call it once more."""

import numpy as np
import tensorflow as tf


def normed(x, training):
    return tf.keras.layers.BatchNormalization(momentum=0.9)(x, training=training)


class Net(object):
    def __init__(self, units):
        self.units = units

    def __call__(self, x, training):
        for place in range(2):
            x = tf.keras.layers.Dense(self.units, activation="tanh", name="dense_of_{}".format(place))(x)
            x = normed(x, training)
        x = tf.keras.layers.RNN(tf.keras.layers.SimpleRNNCell(5))(tf.expand_dims(x, 1))
        return tf.keras.layers.Dense(2)(x)


def model_fn(features, labels, mode, params):
    net = Net(params["units"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        logits = net(features["x"], training=False)
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    logits = net(features["x"], training=True)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(16)


estimator = tf.estimator.Estimator(model_fn, "model", params={"units": 6})
estimator.train(input_fn, steps=20)
print("loss below 1:", bool(estimator.evaluate(input_fn, steps=5)["loss"] < 1))
print("predicted", len([one for one in estimator.predict(lambda: input_fn().take(1))]))
