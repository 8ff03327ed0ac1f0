"""Two model functions that share a network: one that can be taken apart, and one whose losses are in a collection."""

import numpy as np
import tensorflow as tf


def network(features):
    """Returns the logits."""
    hidden = tf.layers.dense(features["x"], 4, tf.nn.relu, name="hidden")
    return tf.layers.dense(hidden, 3, name="logits")


def plain_fn(features, labels, mode):
    """A classifier."""
    logits = network(features)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def add_losses(labels, logits):
    """Adds two losses to the collection of all."""
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.losses.add_loss(0.1 * tf.reduce_mean(tf.square(logits)))


def whole_fn(features, labels, mode):
    """A classifier with large logits punished."""
    logits = network(features)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    add_losses(labels, logits)
    loss = tf.losses.get_total_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    """Returns 70 examples in batches of 16."""
    draw = np.random.RandomState(1)
    features = {"x": draw.rand(70, 5).astype("float32")}
    return tf.data.Dataset.from_tensor_slices((features, draw.randint(0, 3, 70))).batch(16)


def main():
    """Trains and evaluates both."""
    plain = tf.estimator.Estimator(plain_fn)
    plain.train(input_fn)
    print(plain.evaluate(input_fn))
    whole = tf.estimator.Estimator(whole_fn)
    whole.train(input_fn)
    print(whole.evaluate(input_fn))


if __name__ == "__main__":
    main()
