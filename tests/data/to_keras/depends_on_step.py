"""A variational autoencoder's weight of one of its losses grows with the step, and its network adds less and less."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode):
    step = tf.train.get_or_create_global_step()
    hidden = tf.layers.dense(features["x"], 4, tf.nn.relu)
    hidden += tf.exp(-tf.cast(step, tf.float32) / 5.0)
    out = tf.layers.dense(hidden, 2)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=out)
    weight = tf.train.polynomial_decay(0.0, step, 10, 1.0)
    loss = tf.losses.mean_squared_error(labels, out) + weight * tf.reduce_mean(tf.square(hidden))
    rate = tf.train.exponential_decay(0.01, step, 5, 0.5)
    op = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, out, loss, op, {"weight": tf.metrics.mean(weight)})


draws = np.random.RandomState(0)
x, y = draws.rand(40, 3).astype(np.float32), draws.rand(40, 2).astype(np.float32)
input_fn = tf.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=8, num_epochs=3, shuffle=False)
model = tf.estimator.Estimator(model_fn)
model.train(input_fn)
print("weight: %.4f of %d predictions" % (model.evaluate(input_fn)["weight"], len([*model.predict(input_fn)])))
