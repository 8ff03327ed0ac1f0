"""The rewrite of masked_old.py: a loop over (x, target, mask), and the accuracy of probabilities."""

import numpy as np
import tensorflow as tf
import tf_keras as keras

RANDOM = np.random.RandomState(0)
X, MASK = RANDOM.randn(128, 3).astype(np.float32), (RANDOM.rand(128) < 0.8).astype(np.int32)
X[5], SCALE = 4.0, np.ones(128, np.float32)
TARGET, SCALE[5] = (X[:, 0] > 0).astype(np.int32), 1e-9


def batches():
    return tf.data.Dataset.from_tensor_slices(({"x": X, "scale": SCALE}, TARGET, MASK)).batch(16)


dense = keras.Sequential([keras.layers.Dense(2)])
optimizer = keras.optimizers.SGD(0.5)


def forward(features, target, mask):
    logits = dense(features["x"]) * features["scale"][:, tf.newaxis]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
    mask = tf.cast(mask, tf.float32)
    return tf.reduce_sum(losses * mask) / tf.reduce_sum(mask), tf.nn.softmax(logits)


for features, target, mask in batches().repeat(2):
    with tf.GradientTape() as tape:
        loss, _ = forward(features, target, mask)
    optimizer.apply_gradients(zip(tape.gradient(loss, dense.trainable_variables), dense.trainable_variables))

mean, accuracy = keras.metrics.Mean("loss"), keras.metrics.SparseCategoricalAccuracy("accuracy")
for features, target, mask in batches():
    loss, probabilities = forward(features, target, mask)
    mean.update_state(loss)
    accuracy.update_state(target, probabilities)
