"""An Estimator whose features are a tuple, which predicts three times."""

import numpy as np
import tensorflow.compat.v1 as tf

RANDOM = np.random.RandomState(0)
X, KINDS = RANDOM.randn(48, 3).astype(np.float32), RANDOM.randint(0, 4, [48]).astype(np.int32)
Y = X.sum(1, keepdims=True) * (KINDS[:, None] + 0.5).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(((X, KINDS), Y)).batch(16)


def model_fn(features, labels, mode):
    x, kinds = features
    output = tf.layers.dense(x, 1) * (tf.to_float(kinds)[:, tf.newaxis] + 1.0)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"output": output})
    loss = tf.losses.mean_squared_error(labels, output)
    metrics = {"error": tf.metrics.mean_absolute_error(labels, output)}
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
estimator.evaluate(input_fn)
for _ in range(3):
    list(estimator.predict(input_fn))
