"""The rewrite of triplet_old.py, whose batches are dictionaries of two halves."""

import numpy as np
import tensorflow as tf
import tf_keras as keras


def batches():
    random = np.random.RandomState(0)
    labels = random.randint(0, 4, 320).astype(np.int32)
    x = (random.randn(320, 8) + labels[:, None]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"left": x[:, :4], "right": x[:, 4:]}, labels)).batch(32)


def hardest_triplets(labels, embeddings):
    labels = tf.reshape(labels, [-1])
    products = embeddings @ tf.transpose(embeddings)
    squares = tf.linalg.diag_part(products)
    apart = tf.maximum(squares[None] - 2.0 * products + squares[:, None], 0.0)
    same = tf.cast(labels[None] == labels[:, None], tf.float32)
    farthest = tf.reduce_max(same * apart, axis=1)
    nearest = tf.reduce_min(apart + same * tf.reduce_max(apart, axis=1, keepdims=True), axis=1)
    return tf.reduce_mean(tf.maximum(farthest - nearest + 0.5, 0.0))


inputs = {"left": keras.Input([4], name="left"), "right": keras.Input([4], name="right")}
net = keras.layers.Concatenate()([inputs["left"], inputs["right"]])
for name, activation in (("first", "relu"), ("second", "relu"), ("embeddings", None)):
    net = keras.layers.Dense(8, activation, name=name)(net)
model = keras.Model(inputs, net)
model.compile(keras.optimizers.legacy.Adam(0.001, epsilon=1e-8), hardest_triplets)
model.fit(batches(), verbose=0)
