"""A decoder that reads the labels in training and its own words in predictions, in a scope that holds the returns."""

import numpy as np
import tensorflow as tf


def decoder(state, table, targets, vocabulary):
    with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
        word = tf.zeros([tf.shape(state)[0]], tf.int64)
        outputs = []
        for step in range(3):
            joined = tf.concat([state, tf.nn.embedding_lookup(table, word)], 1)
            state = tf.layers.dense(joined, 8, tf.nn.tanh, name="cell")
            logits = tf.layers.dense(state, vocabulary, name="words")
            outputs.append(logits)
            word = targets[:, step] if targets is not None else tf.argmax(logits, 1)
        return tf.stack(outputs, 1)


def model_fn(features, labels, mode, params):
    with tf.variable_scope("model", initializer=tf.random_uniform_initializer(-0.5, 0.5)):
        inputs, targets = features["x"], labels
        table = tf.get_variable("table", [params["vocabulary"], 4])
        state = tf.layers.dense(tf.reduce_mean(tf.nn.embedding_lookup(table, inputs), 1), 8, name="encoder")
        logits = decoder(state, table, targets, params["vocabulary"])
        words = tf.argmax(logits, -1)
        if mode == tf.estimator.ModeKeys.PREDICT:
            if params["use_tpu"]:
                raise ValueError("TPUs cannot predict")
            return tf.estimator.EstimatorSpec(mode, predictions={"words": words, "logits": logits})
        loss = tf.losses.sparse_softmax_cross_entropy(targets, logits)
        if mode == tf.estimator.ModeKeys.EVAL:
            if params["use_tpu"]:
                return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss)
            metrics = {"accuracy": tf.metrics.accuracy(targets, words)}
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        spec = tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)
        if params["use_tpu"]:
            return spec
        return spec.as_estimator_spec()


def input_fn():
    x = np.random.RandomState(0).randint(0, 9, [64, 5]).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :3])).repeat().batch(8)


estimator = tf.estimator.Estimator(model_fn, "model", params={"vocabulary": 9, "use_tpu": False})
estimator.train(input_fn, steps=20)
print("loss below 3:", bool(estimator.evaluate(input_fn, steps=2)["loss"] < 3))
print("predicted", [one["words"].shape for one in estimator.predict(lambda: input_fn().take(1))])
