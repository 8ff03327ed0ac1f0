"""An Estimator whose model is exported with two signatures."""

import numpy as np
import tensorflow as tf


def batches():
    random = np.random.RandomState(0)
    x = random.randn(96, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1, keepdims=True) > 0)).batch(8)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features["x"], 1, name="logits")
    probabilities = tf.nn.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = tf.estimator.export.PredictOutput({"probabilities": probabilities})
        return tf.estimator.EstimatorSpec(
            mode,
            predictions={"probabilities": probabilities},
            export_outputs={"serving_default": outputs, "logits": tf.estimator.export.PredictOutput({"logits": logits})},
        )
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def receiver():
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(batches)
estimator.export_saved_model("exports", receiver)
