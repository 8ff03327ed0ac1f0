"""Input functions that change the tensors of an iterator before they return them."""

import numpy as np
import tensorflow as tf


def dataset(epochs):
    draws = np.random.RandomState(0)
    values = draws.rand(40, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((values, values[:, :1] * 2.0)).repeat(epochs).batch(8)


def with_names(epochs):
    data = dataset(epochs)
    data = data.prefetch(1)
    iterator = data.make_one_shot_iterator()
    # the network looks for x
    values, labels = iterator.get_next()
    values = values - 0.5  # around 0
    features = {"x": values}
    return features, labels


def with_initializer():
    iterator = tf.data.make_initializable_iterator(dataset(1))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    batch = iterator.get_next()
    return {"x": batch[0] - 0.5}, batch[1]


def features_alone():
    values, _ = dataset(1).make_one_shot_iterator().get_next()
    return {"x": values}, None


def unchanged(epochs):
    named = dataset(epochs).map(lambda values, labels: ({"x": values}, labels))
    features, labels = named.make_one_shot_iterator().get_next()
    return features, labels
    print("never")


def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features["x"], 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": outputs})
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: with_names(2))
estimator.evaluate(with_initializer)
estimator.evaluate(lambda: unchanged(1), steps=2)
print(len(list(estimator.predict(features_alone))), "predictions")
