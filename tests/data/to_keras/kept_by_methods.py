"""A class whose model function keeps values for its other methods, loops that make several layers a turn, and cells that a function makes."""

import numpy as np
import tensorflow as tf

DOWN = "down"
STACKED = True


def pool(x, pool, name):
    return tf.layers.max_pooling1d(x, pool, 1, name=name)


def cell():
    if STACKED:
        made = tf.contrib.rnn.GRUCell(4)
    else:
        made = tf.contrib.rnn.LSTMCell(4)
    return made


class Classifier(object):
    def __init__(self, classes):
        self.classes = classes

    # what the evaluation needs
    def evaluation(self, mode, labels):
        found = tf.argmax(self.logits, axis=1)
        return tf.estimator.EstimatorSpec(
            mode, loss=self.loss, eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, found)}
        )

    def predict(self, net, labels, params):
        self.logits = tf.layers.dense(net, self.classes, name="logits")
        if labels is not None:
            self.loss = params["loss"](labels=labels, logits=self.logits)

    def model_fn(self, features, labels, mode, params):
        net = features["x"]
        with tf.variable_scope(DOWN):
            for size in params["sizes"]:
                net = tf.layers.conv1d(net, size, 3, padding="same")
                net = tf.layers.conv1d(net, size, 3, padding="same", activation=tf.nn.relu)
            net = tf.layers.conv1d(net, 6, 1)
        net = pool(net, 2, "first")
        for turn, size in enumerate(params["sizes"]):
            net = tf.layers.conv1d(net, size, 1)
            if turn == 0:
                net = tf.layers.conv1d(net, 5, 1, activation=tf.nn.relu)
            else:
                net = tf.layers.conv1d(net, 4, 1)
        net = tf.layers.conv1d(net, 4, 1)
        cells = tf.contrib.rnn.MultiRNNCell([cell() for _ in range(2)])
        outputs, _ = tf.nn.dynamic_rnn(cells, net, dtype=tf.float32)
        self.predict(outputs[:, -1], labels, params)
        if mode == tf.estimator.ModeKeys.TRAIN:
            self.train_op = tf.train.AdamOptimizer(0.01).minimize(self.loss, tf.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=self.loss, train_op=self.train_op)
        if mode == tf.estimator.ModeKeys.EVAL:
            return self.evaluation(mode, labels)
        return tf.estimator.EstimatorSpec(mode, predictions=self.logits)


draws = np.random.RandomState(0)
rows, labels = draws.rand(40, 6, 3).astype(np.float32), draws.randint(0, 3, 40)
input_fn = tf.estimator.inputs.numpy_input_fn({"x": rows}, labels, batch_size=10, num_epochs=3, shuffle=False)
params = {"sizes": [4, 5], "loss": tf.losses.sparse_softmax_cross_entropy}
classifier = Classifier(3)
model = tf.estimator.Estimator(classifier.model_fn, params=params)
model.train(input_fn)
print("loss below 1.2:", model.evaluate(input_fn)["loss"] < 1.2)
