"""A model of Keras that each mode calls in a branch of its own."""

import numpy as np
import tensorflow as tf


def create_model(units):
    return tf.keras.Sequential(
        [tf.keras.layers.Dense(units, activation="relu"), tf.keras.layers.Dropout(0.4), tf.keras.layers.Dense(3)]
    )


def model_fn(features, labels, mode, params):
    model = create_model(params["units"])
    image = features
    if isinstance(image, dict):
        image = features["image"]
    if mode == tf.estimator.ModeKeys.PREDICT:
        logits = model(image, training=False)
        predictions = {"classes": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
        outputs = {"classify": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.AdamOptimizer(learning_rate=0.01)
        logits = model(image, training=True)
        loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
        accuracy = tf.metrics.accuracy(labels=labels, predictions=tf.argmax(logits, axis=1))
        tf.identity(accuracy[1], name="train_accuracy")
        tf.summary.scalar("train_accuracy", accuracy[1])
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    if mode == tf.estimator.ModeKeys.EVAL:
        logits = model(image, training=False)
        loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
        metrics = dict(accuracy=tf.metrics.accuracy(labels=labels, predictions=tf.argmax(logits, axis=1)))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)


def input_fn():
    def named(values, labels):
        features = {"image": values}
        return features, labels

    draws = np.random.RandomState(0)
    rows = draws.rand(60, 8).astype(np.float32), draws.randint(0, 3, 60)
    dataset = tf.data.Dataset.from_tensor_slices(rows).map(named).batch(12)
    iterator = dataset.make_one_shot_iterator()
    features, labels = iterator.get_next()
    return features, labels


estimator = tf.estimator.Estimator(model_fn, params={"units": 8})
estimator.train(input_fn)
print("accuracy above 0:", estimator.evaluate(input_fn)["accuracy"] > 0.0)
print(len(list(estimator.predict(input_fn))), "predictions")
