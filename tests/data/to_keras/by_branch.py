"""Networks that differ by mode in values alone, functions with several returns or inside of expressions, classes of Keras with tf.layers."""

import sys

import numpy as np
import tensorflow as tf
import tensorflow.contrib.layers as layers


def build(x, size, keep_prob):
    net = layers.fully_connected(x, size, scope="fc1")
    net = layers.dropout(net, keep_prob=keep_prob, scope="drop1")
    return layers.fully_connected(net, 3, activation_fn=None, scope="fc2")


def dropped_model(features, labels, mode, params):
    if mode == tf.estimator.ModeKeys.PREDICT:
        logits = build(features["x"], params["size"], 1.0)
        return tf.estimator.EstimatorSpec(mode, predictions={"class": tf.argmax(logits, 1)})
    if mode == tf.estimator.ModeKeys.TRAIN:
        logits = build(features["x"], params["size"], params["keep"])
        loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
        train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    logits = build(features["x"], params["size"], 1.0)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})


def norm(x, training):
    return tf.layers.batch_normalization(x, training=training, momentum=0.9)


def block(x, size, training):
    y = tf.layers.dense(x, size)
    return tf.nn.relu(norm(y, training))


def network(x, params, training):
    # the first kind
    if params["size"] == 1:
        return block(x, 9, training)
    elif params["size"] == 8:
        with tf.variable_scope("deep"):
            y = block(x, 8, training)
            return y + norm(tf.layers.dense(x, 8), training)
    raise ValueError(params["size"])


def normed_model(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = network(features["x"], params, training)
    if training:
        net = tf.nn.dropout(net, 0.8)
    weight = 0.5 if training else 1.0
    logits = tf.layers.dense(net * weight, 3, name="logits")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"class": tf.argmax(logits, 1)})
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    loss = tf.losses.get_total_loss(add_regularization_losses=False, name="loss")
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mean": tf.metrics.mean(logits)})
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class Net(tf.keras.Model):
    def __init__(self, size):
        super(Net, self).__init__()
        self.first = tf.layers.Dense(size, activation=tf.nn.relu)
        self.drop = tf.layers.Dropout(0.4)
        self.last = tf.layers.Dense(3)

    def __call__(self, x, training):
        y = tf.layers.flatten(self.first(x))
        y = self.drop(y, training=training)
        return self.last(tf.layers.dropout(y, 0.3, training=training))


class Plain(object):
    def __init__(self, size):
        self.first = tf.layers.Dense(size, activation=tf.nn.relu)
        self.last = tf.layers.Dense(3)

    def __call__(self, x):
        return self.last(self.first(x))


def loss_and_update(logits, labels, rate):
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return loss, tf.train.GradientDescentOptimizer(rate).minimize(loss, tf.train.get_global_step())


def show(value):
    with tf.name_scope("shown"):
        tf.summary.scalar("loss", value)


def plain_model(features, labels, mode, params):
    network = Plain(params["size"])
    del params
    if mode == tf.estimator.ModeKeys.TRAIN:
        logits = network(features["x"])
        loss, optimizer = loss_and_update(logits, labels, 0.2)
        show(loss)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer)
    logits = network(features["x"])
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return tf.estimator.EstimatorSpec(mode, loss=loss)


def keras_model(features, labels, mode, params):
    net = Net(params["size"])
    logits = net(tail(features["x"]), training=mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def tail(x):
    y = tf.keras.layers.Dense(6, activation="relu")(x)
    return tf.keras.layers.Dense(5)(y)


def input_fn():
    draws = np.random.RandomState(0)
    rows = draws.rand(40, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, draws.randint(0, 3, 40))).batch(8)


params = {"size": 8, "keep": 0.5}
if sys.argv[1:] == ["norms"]:
    estimator = tf.estimator.Estimator(normed_model, params=params)
elif sys.argv[1:] == ["plain"]:
    estimator = tf.estimator.Estimator(plain_model, params=params)
elif sys.argv[1:] == ["keras"]:
    estimator = tf.estimator.Estimator(keras_model, params=params)
else:
    estimator = tf.estimator.Estimator(dropped_model, params=params)
estimator.train(input_fn)
print("step", estimator.evaluate(input_fn)["global_step"])
