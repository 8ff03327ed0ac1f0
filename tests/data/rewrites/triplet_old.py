"""An Estimator that embeds rows, trained by the hardest triplets of each batch; its layers have kernels of one shape."""

import numpy as np
import tensorflow as tf


def batches():
    random = np.random.RandomState(0)
    labels = random.randint(0, 4, 320).astype(np.int32)
    x = (random.randn(320, 8) + labels[:, None]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, labels)).batch(32)


def distances(embeddings):
    products = tf.matmul(embeddings, embeddings, transpose_b=True)
    squares = tf.diag_part(products)
    return tf.maximum(tf.expand_dims(squares, 0) - 2.0 * products + tf.expand_dims(squares, 1), 0.0)


def hardest_triplets(labels, embeddings, margin):
    apart = distances(embeddings)
    same = tf.to_float(tf.equal(tf.expand_dims(labels, 0), tf.expand_dims(labels, 1)))
    farthest = tf.reduce_max(same * apart, axis=1)
    nearest = tf.reduce_min(apart + same * tf.reduce_max(apart, axis=1, keepdims=True), axis=1)
    return tf.reduce_mean(tf.maximum(farthest - nearest + margin, 0.0))


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 8, tf.nn.relu)
    net = tf.layers.dense(net, 8, tf.nn.relu)
    embeddings = tf.layers.dense(net, 8)
    loss = hardest_triplets(labels, embeddings, 0.5)
    train_op = tf.train.AdamOptimizer(0.001).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


tf.estimator.Estimator(model_fn).train(batches)
