"""An Estimator: two dense layers with dropout and Adam, trained twice, evaluated on batches of unequal size."""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.01)
parser.add_argument("--one-device", action="store_true")
parser.add_argument("--permuted", action="store_true")
parser.add_argument("--sets", choices=["hook", "scaffold"], help="what gives the bias of the logits its first value")
parser.add_argument("--noisy", action="store_true", help="draw the logits of evaluations and predictions anew each time")
ARGS = parser.parse_args()


def data(rows, seed):
    random = np.random.RandomState(seed)
    x = random.randn(rows, 6).astype(np.float32)
    return {"x": x}, (x[:, 0] + x[:, 1] > 0).astype(np.int32)


def batches(rows, seed, shuffle):
    x, y = data(rows, seed)
    if ARGS.permuted and shuffle:
        order = np.random.RandomState(5).permutation(rows)
        return tf.data.Dataset.from_tensor_slices(({"x": x["x"][order]}, y[order])).batch(16)
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    return (dataset.shuffle(rows, seed=3) if shuffle else dataset).batch(16)


def set_bias(session):
    (bias,) = (variable for variable in tf.trainable_variables() if variable.op.name == "logits/bias")
    bias.load([0.5, -0.5], session)


class SetBias(tf.train.SessionRunHook):
    """Gives the bias of the logits its first value, unless a training goes on."""

    def after_create_session(self, session, coord):
        if not session.run(tf.train.get_global_step()):
            set_bias(session)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.layers.dense(features["x"], 12, tf.nn.tanh, name="hidden")
    net = tf.layers.dropout(net, 0.3, training=training)
    logits = tf.layers.dense(net, 2, name="logits")
    classes = tf.argmax(logits, 1)
    if ARGS.noisy and not training:
        logits += tf.random_normal(tf.shape(logits))
    predictions = {"classes": classes, "logits": logits}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(ARGS.rate).minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["classes"])}
    scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: set_bias(session)) if ARGS.sets == "scaffold" else None
    hooks = [SetBias()] if ARGS.sets == "hook" else []
    return tf.estimator.EstimatorSpec(
        mode, predictions, loss, train_op, eval_metric_ops=metrics, scaffold=scaffold, training_hooks=hooks
    )


strategy = tf.distribute.OneDeviceStrategy("cpu:0") if ARGS.one_device else None
estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(train_distribute=strategy, eval_distribute=strategy))
for _ in range(2):
    estimator.train(lambda: batches(192, 0, True))
    estimator.evaluate(lambda: batches(40, 1, False))
list(estimator.predict(lambda: batches(40, 1, False)))
