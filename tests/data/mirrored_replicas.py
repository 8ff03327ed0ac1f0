"""Trains on two replicas, each with batches of its own: number of steps, share of dropout and, if they are others, devices.

The share may be followed by ``:seeded`` or ``:keras``, which draw in another way.
One device alone is no replica.
"""

import sys

import numpy as np
import tensorflow as tf

STEPS = int(sys.argv[1])
DROPPED, _, KIND = sys.argv[2].partition(":")
DROPPED = float(DROPPED)


def input_fn(input_context=None):
    size = 16 // (input_context.num_replicas_in_sync if input_context else 1)
    x = np.random.RandomState(0).rand(64, 4).astype("float32")
    features = {"x": x, "label": (x.sum(1) > 2).astype("int32")}
    return tf.data.Dataset.from_tensor_slices(features).shuffle(64).repeat().batch(size)


def dropped(net, training):
    if KIND == "keras":
        return tf.keras.layers.Dropout(DROPPED)(net, training=training)
    return tf.layers.dropout(net, DROPPED, seed=7 if KIND == "seeded" else None, training=training)


def model_fn(features, mode):
    labels = features["label"]
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.layers.batch_normalization(tf.layers.dense(features["x"], 8, tf.nn.relu), training=training)
    logits = tf.layers.dense(dropped(net, training) if DROPPED else net, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        rate = 0.01 * tf.distribute.get_strategy().num_replicas_in_sync
        train_op = tf.train.AdamOptimizer(rate).minimize(loss, tf.train.get_global_step())
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy})


devices = sys.argv[3:] or ["/cpu:0", "/cpu:1"]
strategy = tf.distribute.MirroredStrategy(devices) if devices[1:] else tf.distribute.OneDeviceStrategy(devices[0])
config = tf.estimator.RunConfig(train_distribute=strategy, eval_distribute=strategy)
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn, steps=STEPS)
estimator.evaluate(input_fn, steps=2)
