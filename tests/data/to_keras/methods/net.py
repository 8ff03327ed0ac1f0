"""A network whose object is the model: its method is the model function."""

import numpy as np
import tensorflow as tf


class Base(object):
    def __init__(self, width):
        self.width = width
        self.calls = 0

    def network(self, x, training):
        raise NotImplementedError

    def metrics(self, labels, logits):
        return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}


class Net(Base):
    """A network."""

    def __init__(self, width, rate):
        super(Net, self).__init__(width)
        self.rate = rate

    def network(self, x, training):
        for index in range(self.width):
            x = tf.contrib.layers.fully_connected(x, 4 + index)
            x = tf.contrib.layers.bias_add(x)
            self.calls += 1
        return tf.layers.dense(tf.layers.dropout(x, 0.0, training=training), 3)

    def input_fn(self, mode):
        x = np.random.RandomState(0).rand(32, 8).astype(np.float32)
        y = np.arange(32, dtype=np.int32) % 3
        data = tf.data.Dataset.from_tensor_slices((x, y))
        if mode == tf.estimator.ModeKeys.TRAIN:
            data = data.repeat()
        return data.batch(8)

    def model_fn(self, features, labels, mode, params):
        logits = self.network(features, mode == tf.estimator.ModeKeys.TRAIN)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"classes": tf.argmax(logits, 1)})
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tf.train.AdamOptimizer(self.rate)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=self.metrics(labels, logits))
