"""Model functions with arguments that the script binds, a layout that the build chooses, and an input that numpy draws once."""

import functools
import sys

import numpy as np
import tensorflow as tf


def model_fn(units, name, features, labels, mode, params, config):
    data_format = "channels_first" if tf.test.is_built_with_cuda() else "channels_last"
    net = tf.reshape(features["x"], [-1, 6, 6, 1])
    net = tf.layers.conv2d(net, units, 3, data_format=data_format, activation=tf.nn.relu, name="images")
    logits = tf.layers.dense(tf.layers.flatten(net), 2, name=name)
    rate = params["rate"] if mode == tf.estimator.ModeKeys.TRAIN else 0.0
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits) + loss_of_mode(logits, mode)
    tf.logging.info("saves each %s steps", config.save_checkpoints_steps)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def loss_of_mode(logits, mode):
    return 0.1 * tf.nn.l2_loss(logits) if mode == tf.estimator.ModeKeys.TRAIN else 0.0


def input_fn():
    x = np.random.normal(size=[32, 36]).astype(np.float32)
    return {"x": tf.constant(x)}, tf.constant(np.random.randint(0, 2, 32))


np.random.seed(7)
bound = functools.partial(model_fn, 3, name="answer")
if sys.argv[1:] == ["lambda"]:
    estimator = tf.estimator.Estimator(
        lambda features, labels, mode, params, config: model_fn(4, "last", features, labels, mode, params, config),
        "model",
        params={"rate": 0.1},
    )
else:
    estimator = tf.estimator.Estimator(bound, "model", params={"rate": 0.05})
estimator.train(input_fn, steps=5)
print("metrics:", sorted(estimator.evaluate(input_fn, steps=2)))
