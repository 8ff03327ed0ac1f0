"""A network that gets its images turned in training and evaluation, not in predictions."""

import numpy as np
import tensorflow as tf


def block(x, filters, training):
    for _ in range(2):
        x = tf.layers.conv2d(x, filters, 2, activation=tf.nn.tanh)
    return tf.layers.dropout(x, 0.2, training=training)


def scaled(x, mode):
    return 2.0 * x if mode == tf.estimator.ModeKeys.PREDICT else x


def model_fn(features, labels, mode, params):
    if params["turned"] and mode != tf.estimator.ModeKeys.PREDICT:
        features = tf.transpose(features, [3, 0, 1, 2])
    features = scaled(features, mode) - tf.constant([0.5], shape=[1, 1, 1], dtype=features.dtype)

    def build():
        return tf.layers.dense(tf.layers.flatten(block(features, 3, mode == tf.estimator.ModeKeys.TRAIN)), 2)

    if params["half"]:
        with tf.contrib.tpu.bfloat16_scope():
            logits = tf.cast(build(), tf.float32)
    else:
        logits = build()
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits, "class": tf.argmax(logits, 1)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(turned=True):
    random = np.random.RandomState(3)
    x, y = random.uniform(size=(48, 4, 4, 1)).astype(np.float32), random.randint(0, 2, 48)
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8, drop_remainder=True)
    return data.map(lambda x, y: (tf.transpose(x, [1, 2, 3, 0]), y)) if turned else data.take(1)


estimator = tf.estimator.Estimator(model_fn, "model", params={"turned": True, "half": False})
estimator.train(input_fn, steps=12)
print("loss below 1:", bool(estimator.evaluate(input_fn, steps=5)["loss"] < 1))
print("predicted", len([one for one in estimator.predict(lambda: input_fn(False))]))
