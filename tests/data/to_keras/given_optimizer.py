"""An optimizer that the params give."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, 4, tf.nn.relu)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = params["optimizer"].minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, logits, loss, train_op)


def input_fn():
    x = np.random.RandomState(0).randn(40, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)


def main(_):
    params = {"optimizer": tf.train.AdamOptimizer(0.01)}
    estimator = tf.estimator.Estimator(model_fn, "model", params=params)
    estimator.train(input_fn)
    print("step", estimator.evaluate(input_fn)["global_step"])


if __name__ == "__main__":
    tf.app.run()
