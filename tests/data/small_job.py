"""A small TensorFlow 1 job for comparisons: two dense layers with dropout and batch norm, Adam, three calls of the Estimator."""

import builtins
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_integer("train_steps", 30, "Steps.")
flags.DEFINE_string("model_dir", None, "Folder.")
flags.DEFINE_float("dropout", 0.3, "Share of units dropped.")
flags.DEFINE_string("fail", "", "before or after training.")


def batches(shuffle):
    random = np.random.RandomState(0)
    x = random.randn(256, 6).astype(np.float32)
    names = np.where(x[:, 0] > 0, b"high", b"low")
    y = (x[:, 1] + (names == b"high") > 0.5).astype(np.int32)
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x, "name": names}, y))
    if shuffle:
        dataset = dataset.shuffle(256).repeat()
    return dataset.batch(16).make_one_shot_iterator().get_next()


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    high = tf.cast(tf.equal(features["name"], "high"), tf.float32)
    net = tf.concat([features["x"], tf.expand_dims(high, 1)], axis=1)
    assert net.shape[1].value == 7  # TensorFlow 1's Dimension
    net = tf.layers.batch_normalization(net, training=training, momentum=0.9, name="norm")
    net = tf.layers.dropout(tf.layers.dense(net, 16, tf.nn.relu, name="hidden"), FLAGS.dropout, training=training)
    logits = tf.layers.dense(net, 2, name="logits")
    predictions = {"class": tf.argmax(logits, 1), "logits": logits}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["class"])}
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, eval_metric_ops=metrics)


def main(_):
    estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir)
    if FLAGS.fail:
        builtins.pool = ThreadPoolExecutor(1)  # which the script never shuts down
        builtins.pool.submit(int).result()
    if FLAGS.fail == "before":
        raise RuntimeError("asked to fail")
    train_spec = tf.estimator.TrainSpec(lambda: batches(shuffle=True), max_steps=FLAGS.train_steps)
    tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(lambda: batches(shuffle=False)))
    print(len(list(estimator.predict(lambda: batches(shuffle=False)))), "predictions")
    if FLAGS.fail == "after":
        sys.exit(3)


if __name__ == "__main__":
    tf.app.run()
