"""Model functions that other functions make, each for a choice of TPUs: ``builders.py [narrow]``."""

import sys

import numpy as np
import tensorflow as tf


def wide(units, rate):
    def model_fn(features, labels, mode, params):
        net = tf.layers.dense(features["x"], units, tf.nn.tanh)
        predicted = tf.layers.dense(net, 1)
        if labels is None:
            return tf.estimator.EstimatorSpec(mode, predictions={"y": predicted})
        loss = tf.losses.mean_squared_error(labels, predicted)
        optimizer = tf.train.GradientDescentOptimizer(rate)
        if params["use_tpu"]:
            optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())

        def measured(labels, predicted):
            return {"error": tf.metrics.mean_absolute_error(labels, predicted)}

        eval_metrics = (measured, [labels, predicted])
        if params["use_tpu"]:
            # only where there is one
            return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=eval_metrics)
        else:
            metrics = measured(labels, predicted)
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)

    return model_fn


def narrow(rate):
    def model_fn(features, labels, mode, params):
        predicted = tf.layers.dense(features["x"], 1)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"y": predicted})
        loss = tf.losses.mean_squared_error(labels, predicted)
        train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, tf.train.get_global_step())
        if params["use_tpu"]:

            def shown(step):
                return step

            return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def input_fn():
    x = np.random.RandomState(0).normal(size=[40, 3]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1, keepdims=True))).repeat(2).batch(8)


if "narrow" in sys.argv:
    made = narrow(0.05)
else:
    made = wide(5, 0.1)
estimator = tf.estimator.Estimator(model_fn=made, params={"use_tpu": False})
estimator.train(input_fn)
print(sorted(estimator.evaluate(input_fn)))
print(len(list(estimator.predict(input_fn))), "predictions")
