"""An Estimator whose labels are a dictionary, with a row whose two classes have scores that are equal but for rounding."""

import numpy as np
import tensorflow.compat.v1 as tf

RANDOM = np.random.RandomState(0)
X, MASK = RANDOM.randn(128, 3).astype(np.float32), (RANDOM.rand(128) < 0.8).astype(np.int32)
X[5], SCALE = 4.0, np.ones(128, np.float32)
TARGET, SCALE[5] = (X[:, 0] > 0).astype(np.int32), 1e-9


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X, "scale": SCALE}, {"target": TARGET, "mask": MASK})).batch(16)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features["x"], 2) * features["scale"][:, tf.newaxis]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels["target"], logits=logits)
    mask = tf.to_float(labels["mask"])
    loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
    metrics = {"accuracy": tf.metrics.accuracy(labels["target"], tf.argmax(logits, 1))}
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: input_fn().repeat(2))
estimator.evaluate(input_fn)
