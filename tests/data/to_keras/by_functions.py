"""Loss, training and metrics of functions that ask for the mode, as in a well-known course; one EstimatorSpec for all modes."""

import numpy as np
import tensorflow as tf

TRAIN = tf.estimator.ModeKeys.TRAIN
EVAL = tf.estimator.ModeKeys.EVAL


def model_loss(logits, labels, mode):
    return (
        tf.reduce_mean(tf.losses.softmax_cross_entropy(tf.one_hot(labels, 3), logits)) * 10
        if mode == TRAIN or mode == EVAL
        else None
    )


def model_train_op(loss, mode):
    return (
        tf.contrib.layers.optimize_loss(
            loss,
            tf.train.get_global_step(),
            learning_rate=0.003,
            optimizer="Adam",
            # to make the rate fall
            learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 4, 0.9),
        )
        if mode == TRAIN
        else None
    )


def model_metrics(classes, labels, mode):
    return {"accuracy": tf.metrics.accuracy(classes, labels)} if mode == TRAIN or mode == EVAL else None


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 6, use_bias=False)
    net = tf.nn.relu(tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN))
    logits = tf.layers.dense(net, 3)
    classes = tf.cast(tf.argmax(logits, 1), tf.uint8)
    loss = model_loss(logits, labels, mode)
    train_op = model_train_op(loss, mode)
    metrics = model_metrics(classes, labels, mode)
    return tf.estimator.EstimatorSpec(
        mode=mode,
        predictions={"predictions": tf.nn.softmax(logits), "classes": classes},
        loss=loss,
        train_op=train_op,
        eval_metric_ops=metrics,
    )


def input_fn():
    draws = np.random.RandomState(0)
    return tf.data.Dataset.from_tensor_slices((draws.rand(60, 5).astype(np.float32), draws.randint(0, 3, 60))).batch(12)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
print(sorted(estimator.evaluate(input_fn)))
print(len(list(estimator.predict(input_fn))), "predictions")
