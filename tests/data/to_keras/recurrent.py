"""A recurrent network behind RMSProp, whose train_op counts the steps itself."""

import numpy as np
import tensorflow as tf
from tensorflow.estimator import ModeKeys


def read(mode):
    draws = np.random.RandomState(0 if mode == ModeKeys.TRAIN else 1)
    values = draws.rand(60, 5, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": values}, values.sum(axis=(1, 2), keepdims=False))).batch(16)


def model_fn(features, labels, mode):
    cell = tf.nn.rnn_cell.LSTMCell(4)
    _, state = tf.nn.dynamic_rnn(cell, features["x"], dtype=tf.float32)
    predicted = tf.squeeze(tf.layers.dense(state.h, 1), 1)
    print("predictions:", predicted)
    if mode == ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"sum": predicted})
    loss = tf.losses.mean_squared_error(labels, predicted)
    step = tf.train.get_global_step()
    train_op = tf.group(tf.train.RMSPropOptimizer(0.05).minimize(loss), tf.assign_add(step, 1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def rows_input_fn():
    rows = tf.data.Dataset.from_tensor_slices({"x": np.ones([3, 5, 3], np.float32)}).batch(2)
    features = rows.make_one_shot_iterator().get_next()
    return features, None


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: read(ModeKeys.TRAIN))
print("step", estimator.evaluate(lambda: read(ModeKeys.EVAL))["global_step"])
print(len(list(estimator.predict(rows_input_fn))), "predictions")
