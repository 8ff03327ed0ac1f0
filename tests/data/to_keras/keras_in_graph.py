"""A model function that stays whole, with layers and models of Keras that each graph makes."""

import numpy as np
import tensorflow as tf


class Block(tf.keras.Model):
    def __init__(self, width):
        super(Block, self).__init__()
        self.first = tf.keras.layers.Dense(width, activation="relu", kernel_regularizer=tf.keras.regularizers.l2(0.01))
        self.second = tf.keras.layers.Dense(width)

    def call(self, x):
        return x + self.second(self.first(x))


class Count:
    """A metric that Python computes: who asks for it begins anew."""

    def __init__(self):
        self.rows = 0

    def add(self, labels):
        self.rows += len(labels)
        return np.float32(self.rows)

    def result(self):
        rows, self.rows = self.rows, 0
        return np.float32(rows)


def network(x, training, depth):
    x = tf.keras.layers.Dense(8)(x)
    for index in range(depth):
        block = Block(8)
        x = block(x)
        if len(block.losses) > 0:
            tf.losses.add_loss(block.losses[0])
    x = tf.layers.batch_normalization(x, training=training)
    x = tf.cast(tf.layers.Dense(8, dtype=tf.float64)(tf.cast(x, tf.float64)), tf.float32)
    x = tf.keras.layers.LSTM(5)(x[:, None])
    head = tf.keras.Sequential([tf.keras.layers.Dense(6), tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(3)])
    return head(x)


def model_fn(features, labels, mode, params):
    logits = network(features, mode == tf.estimator.ModeKeys.TRAIN, params["depth"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"classes": tf.argmax(logits, 1)})
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    loss = tf.losses.get_total_loss()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    count = Count()
    rows = tf.py_func(count.result, [], tf.float32), tf.py_func(count.add, [labels], tf.float32)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1)), "rows": rows}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn():
    x = np.random.RandomState(0).rand(32, 8).astype(np.float32)
    y = np.arange(32, dtype=np.int32) % 3
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


def main():
    estimator = tf.estimator.Estimator(model_fn, params={"depth": 2})
    estimator.train(input_fn, steps=8)
    print(next(estimator.predict(input_fn)))
    found = estimator.evaluate(input_fn, steps=2)
    print("metrics:", sorted(found), found["rows"])


if __name__ == "__main__":
    main()
