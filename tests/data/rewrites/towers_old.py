"""An Estimator: an embedding and a batch norm in two towers, each with an optimizer of its own, and dropout."""

import numpy as np
import tensorflow as tf


def batches():
    random = np.random.RandomState(0)
    rows = {"user": random.randint(0, 40, [168]), "dense": random.randn(168, 5).astype(np.float32)}
    return tf.data.Dataset.from_tensor_slices((rows, (rows["user"] % 3 + rows["dense"][:, 0]).astype(np.float32))).batch(14)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    with tf.variable_scope("wide"):
        table = tf.get_variable("table", [40, 3], initializer=tf.zeros_initializer())
        wide = tf.reduce_sum(tf.nn.embedding_lookup(table, features["user"]), 1)
    with tf.variable_scope("deep"):
        net = tf.layers.dense(features["dense"], 9, tf.nn.tanh, name="hidden")
        net = tf.layers.batch_normalization(net, momentum=0.9, training=training, name="norm")
        net = tf.layers.dropout(net, 0.25, training=training)
        deep = tf.layers.dense(net, 1, name="out")[:, 0]
    predictions = {"score": wide + deep}
    loss = tf.reduce_mean(tf.square(labels - predictions["score"]))
    parts = [tf.trainable_variables("wide"), tf.trainable_variables("deep")]
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        first = tf.train.FtrlOptimizer(0.1).minimize(loss, var_list=parts[0])
        train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step(), parts[1])
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, predictions["score"])}
    return tf.estimator.EstimatorSpec(mode, predictions, loss, tf.group(first, train_op), eval_metric_ops=metrics)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: batches().repeat(2))
estimator.evaluate(batches)
