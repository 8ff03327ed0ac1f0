"""Features that only training has, as the positions of BERT's answers: a prediction does not have them."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features["x"], params["units"], tf.nn.tanh)
    logits = tf.layers.dense(net, 5)
    if mode == tf.estimator.ModeKeys.TRAIN:
        size = logits.shape[1].value

        def loss_of(positions):
            chosen = tf.one_hot(positions, depth=size)
            return -tf.reduce_mean(tf.reduce_sum(chosen * tf.nn.log_softmax(logits), axis=-1))

        start = features["start"]
        end = features["end"]
        loss = (loss_of(start) + loss_of(end)) / 2.0
        train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})


def input_fn(is_training):
    random = np.random.RandomState(3)
    features = {"x": random.uniform(-1, 1, size=(80, 4)).astype(np.float32)}
    if is_training:
        features.update(start=random.randint(0, 5, 80), end=random.randint(0, 5, 80))
    return tf.data.Dataset.from_tensor_slices(features).repeat(3 if is_training else 1).batch(8)


estimator = tf.estimator.Estimator(model_fn, "model", params={"units": 6})
estimator.train(lambda: input_fn(True), steps=20)
print("predicted", len(list(estimator.predict(lambda: input_fn(False)))))
