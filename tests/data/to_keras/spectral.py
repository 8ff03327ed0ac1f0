"""A network that changes a variable of its own each time it is computed; evaluations and predictions change a copy."""

import numpy as np
import tensorflow as tf


def normed(x, units):
    weights = tf.get_variable("weights", [x.shape[1], units])
    left = tf.get_variable("left", [1, units], initializer=tf.ones_initializer(), trainable=False)
    right = tf.stop_gradient(tf.nn.l2_normalize(tf.matmul(left, weights, transpose_b=True)))
    new = tf.stop_gradient(tf.nn.l2_normalize(tf.matmul(right, weights)))
    size = tf.reduce_sum(tf.matmul(right, weights) * new)
    with tf.control_dependencies([left.assign(new)]):
        return tf.matmul(x, weights / size)


def model_fn(features, labels, mode):
    logits = normed(features["x"], 3)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draws = np.random.RandomState(0)
    return tf.data.Dataset.from_tensor_slices(({"x": draws.rand(40, 4).astype(np.float32)}, draws.randint(0, 3, 40))).batch(8)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(sorted(estimator.evaluate(input_fn)), len(list(estimator.predict(input_fn))))
left_open = estimator.predict(input_fn)
next(left_open)
estimator.train(input_fn, steps=3)
left_open.close()
print(sorted(estimator.evaluate(input_fn)))
