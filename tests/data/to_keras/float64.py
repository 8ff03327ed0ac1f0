"""A model whose features are NumPy's float64, and so are its variables."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode, params):
    scaled = features["x"] * tf.get_variable("scale", [3], tf.float64)
    net = tf.layers.dense(scaled, 5, activation=tf.nn.relu)
    value = tf.layers.dense(net, 1)[:, 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=value)
    loss = tf.losses.mean_squared_error(labels, value)
    optimizer = tf.train.MomentumOptimizer(params["rate"], 0.9)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


x = np.random.RandomState(3).rand(60, 3)
y = x.sum(axis=1)
estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.05})
estimator.train(tf.estimator.inputs.numpy_input_fn({"x": x}, y, batch_size=20, num_epochs=8, shuffle=True))
print(list(estimator.predict(tf.estimator.inputs.numpy_input_fn({"x": x}, shuffle=False)))[0].dtype)
