"""Asks by another name if there are labels, and computes something only if the features have a key, which those of predictions have not."""

import numpy as np
import tensorflow as tf

ModeKeys = tf.estimator.ModeKeys
COUNT = 40


def input_fn(mode):
    random = np.random.RandomState(3)
    features = {"x": random.normal(size=[COUNT, 8]).astype(np.float32)}
    truth = features["x"][:, :1] * 2.0
    if mode != ModeKeys.PREDICT:
        features["weight"] = random.uniform(0.5, 1.5, size=[COUNT, 1]).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((features, truth))
    return (dataset.repeat() if mode == ModeKeys.TRAIN else dataset).batch(8)


def model_fn(features, labels, mode):
    wanted = labels
    frames = tf.signal.frame(features["x"], 4, 2)
    net = tf.layers.dense(tf.reshape(frames, [-1, 12]), 5, tf.nn.tanh)
    mean = tf.layers.dense(net, 1)
    weight = features.get("weight")
    if weight is not None:
        penalty = tf.reduce_mean(weight * tf.square(mean))
    if not wanted is None:
        loss = 0.1 * penalty + tf.losses.mean_squared_error(wanted, mean)
        train_op = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=tf.train.get_global_step())
    else:
        loss = None
        train_op = None
    return tf.estimator.EstimatorSpec(mode=mode, predictions={"mean": mean}, loss=loss, train_op=train_op)


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn, "model")
    estimator.train(lambda: input_fn(ModeKeys.TRAIN), steps=20)
    estimator.evaluate(lambda: input_fn(ModeKeys.EVAL), steps=3)
    shape = estimator.get_variable_value("dense/kernel").shape
    print(len(list(estimator.predict(lambda: input_fn(ModeKeys.PREDICT)))), "predictions", shape)
