"""An Estimator: a convolution, batch norm and Momentum with a schedule in steps."""

import numpy as np
import tensorflow as tf


def batches():
    random = np.random.RandomState(0)
    images = random.rand(96, 8, 8, 1).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((images, (images.mean((1, 2, 3)) > 0.5).astype(np.int64))).batch(12)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.layers.conv2d(features, 4, 3, name="conv")
    net = tf.nn.tanh(tf.layers.batch_normalization(net, momentum=0.9, training=training, name="norm"))
    logits = tf.layers.dense(tf.layers.flatten(net), 2, name="logits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    return tf.estimator.EstimatorSpec(mode, {"logits": logits}, loss, train_op, eval_metric_ops=metrics)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: batches().repeat(2))
estimator.evaluate(batches)
