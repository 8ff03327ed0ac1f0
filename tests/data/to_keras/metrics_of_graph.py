"""Metrics that Keras has not: some made in a loop, one with a variable of its own, and evaluations of an older checkpoint."""

import os
import sys

import numpy as np
import tensorflow as tf

MODEL_DIR = sys.argv[1] if len(sys.argv) > 1 else "model"


def right_of_all(labels, classes, number):
    counts = tf.Variable(np.zeros([number, number]), trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES], name="counts")
    batch = tf.cast(tf.confusion_matrix(labels, classes, number), tf.float64)
    return tf.trace(counts) / tf.reduce_sum(counts), tf.assign_add(counts, batch)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features["x"], 3, name="answer")
    classes = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"class": classes, "logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"right": right_of_all(labels, classes, 3), "again": right_of_all(labels, classes, 3)}
        for one in range(3):
            metrics["recall_%d" % one] = tf.metrics.recall(tf.equal(labels, one), tf.equal(classes, one))
        metrics["f1"] = tf.contrib.metrics.f1_score(tf.equal(labels, 1), tf.nn.softmax(logits)[:, 1])
        binary = tf.keras.metrics.BinaryAccuracy()
        binary.update_state(tf.equal(labels, 1)[:, None], tf.nn.softmax(logits)[:, 1:2])
        metrics["binary"] = binary
        metrics["per_class"] = tf.metrics.mean_per_class_accuracy(labels, classes, 3)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    random = np.random.RandomState(0)
    x, y = random.uniform(size=(60, 5)).astype(np.float32), random.randint(0, 3, 60)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(8)  # the last batch has 4 rows


def predict_input_fn():
    return input_fn().map(lambda x, y: x)


config = tf.estimator.RunConfig(save_checkpoints_steps=4)
estimator = tf.estimator.Estimator(model_fn, MODEL_DIR, config)
estimator.train(input_fn, steps=8)
evaluations = [estimator.evaluate(input_fn, checkpoint_path=tf.train.latest_checkpoint(MODEL_DIR))]
if len(sys.argv) > 2:
    older = os.path.join(MODEL_DIR, "model.ckpt-" + sys.argv[2])
    rows = estimator.predict(predict_input_fn, checkpoint_path=older)
    evaluations.extend([estimator.evaluate(input_fn, checkpoint_path=older), next(rows)])
batches = list(estimator.predict(predict_input_fn, yield_single_examples=False))
assert [len(one["class"]) for one in batches] == [8] * 7 + [4]
estimator.train(input_fn, steps=4)
evaluations.append(estimator.evaluate(input_fn, steps=3))
print("metrics:", sorted(evaluations[-1]))
