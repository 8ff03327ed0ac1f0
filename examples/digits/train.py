"""Trains a small convolutional network on scikit-learn's bundled handwritten digits.

A TensorFlow 1 program as such programs were written in 2017 and 2018: a `model_fn` of `tf.layers`, an Estimator with a
`RunConfig` and a session `ConfigProto`, and `tf.estimator.train_and_evaluate`. It needs tensorflow 1.15 and scikit-learn:

    python train.py --train_steps=200

The data are 1,797 images of 8x8 pixels in 17 levels of grey; 360 of them, always the same ones, are held out as the test
split. Two hundred steps (four and a half epochs) take a few seconds on a CPU.
"""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import os
import tempfile

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

flags = tf.app.flags
FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Where checkpoints, summaries and the export go. Default: a new temporary folder.")
flags.DEFINE_integer("train_steps", 200, "Number of training steps in total.")
flags.DEFINE_integer("batch_size", 32, "Examples per training step.")
flags.DEFINE_float("learning_rate", 0.05, "Learning rate of the momentum optimizer.")
flags.DEFINE_float("momentum", 0.9, "Momentum.")
flags.DEFINE_integer("seed", 58, "Seed of the initial weights and of the shuffling.")
flags.DEFINE_integer("save_checkpoints_steps", 100, "Save a checkpoint, and evaluate it, every so many steps.")
flags.DEFINE_integer("num_threads", 2, "Threads of the session, within an op and between ops. 0: TensorFlow decides.")
flags.DEFINE_string("gpu", "0", "Visible GPU(s), such as 0 or 0,1. Ignored by a TensorFlow without GPUs.")

IMAGE_SIZE = 8
NUM_CLASSES = 10
NUM_TEST_IMAGES = 360
MAX_PIXEL = 16.0


def load_data():
    """Returns ((train_images, train_labels), (test_images, test_labels)), the images in [0, 1]."""
    digits = load_digits()
    images = (digits.images / MAX_PIXEL).astype(np.float32)
    labels = digits.target.astype(np.int32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=NUM_TEST_IMAGES, random_state=0, stratify=labels)
    return (train_images, train_labels), (test_images, test_labels)


def train_input_fn(images, labels, batch_size, seed):
    """Shuffled batches without end."""
    dataset = tf.data.Dataset.from_tensor_slices(({"image": images}, labels))
    dataset = dataset.repeat().shuffle(buffer_size=len(labels), seed=seed).batch(batch_size)
    return dataset.prefetch(1).make_one_shot_iterator().get_next()


def eval_input_fn(images, labels, batch_size):
    """Every example once, in order."""
    return tf.data.Dataset.from_tensor_slices(({"image": images}, labels)).batch(batch_size)


def serving_input_receiver_fn():
    image = tf.placeholder(tf.float32, [None, IMAGE_SIZE, IMAGE_SIZE], name="image")
    return tf.estimator.export.ServingInputReceiver({"image": image}, {"image": image})


def model_fn(features, labels, mode, params):
    """conv 32 of 3x3, relu - flatten - dense 128, relu - dense 10."""
    # Seeded here too: with the graph's seed alone the initial weights would depend on how many ops precede them.
    glorot = tf.glorot_uniform_initializer(seed=params["seed"])
    net = tf.reshape(features["image"], [-1, IMAGE_SIZE, IMAGE_SIZE, 1])
    net = tf.layers.conv2d(net, filters=32, kernel_size=3, activation=tf.nn.relu, kernel_initializer=glorot,
                           name="conv")
    net = tf.layers.flatten(net)
    net = tf.layers.dense(net, units=128, activation=tf.nn.relu, kernel_initializer=glorot, name="hidden")
    logits = tf.layers.dense(net, units=NUM_CLASSES, kernel_initializer=glorot, name="logits")

    predictions = {
        "classes": tf.argmax(logits, axis=1, output_type=tf.int32),
        "probabilities": tf.nn.softmax(logits),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        export_outputs = {"classify": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=export_outputs)

    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels=labels, predictions=predictions["classes"])
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})

    hits = tf.cast(tf.equal(labels, predictions["classes"]), tf.float32)
    tf.summary.scalar("batch_accuracy", tf.reduce_mean(hits))
    optimizer = tf.train.MomentumOptimizer(params["learning_rate"], params["momentum"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def make_run_config(model_dir):
    session_config = tf.ConfigProto(
        intra_op_parallelism_threads=FLAGS.num_threads,
        inter_op_parallelism_threads=FLAGS.num_threads,
        allow_soft_placement=True)
    session_config.gpu_options.allow_growth = True
    session_config.gpu_options.visible_device_list = FLAGS.gpu
    return tf.estimator.RunConfig(
        model_dir=model_dir,
        tf_random_seed=FLAGS.seed,
        session_config=session_config,
        save_checkpoints_steps=FLAGS.save_checkpoints_steps,
        save_summary_steps=20,
        log_step_count_steps=20,
        keep_checkpoint_max=3)


def main(_):
    model_dir = FLAGS.model_dir or tempfile.mkdtemp(prefix="digits-")
    (train_images, train_labels), (test_images, test_labels) = load_data()

    estimator = tf.estimator.Estimator(
        model_fn=model_fn,
        config=make_run_config(model_dir),
        params={"learning_rate": FLAGS.learning_rate, "momentum": FLAGS.momentum, "seed": FLAGS.seed})
    train_spec = tf.estimator.TrainSpec(
        input_fn=lambda: train_input_fn(train_images, train_labels, FLAGS.batch_size, FLAGS.seed),
        max_steps=FLAGS.train_steps)
    eval_spec = tf.estimator.EvalSpec(
        input_fn=lambda: eval_input_fn(test_images, test_labels, FLAGS.batch_size),
        steps=None,
        exporters=[tf.estimator.FinalExporter("digits", serving_input_receiver_fn)],
        start_delay_secs=0,
        throttle_secs=0)
    result = tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)

    print("Model and export: %s" % os.path.abspath(model_dir))
    if result is None:  # a task of a cluster: its evaluator has the metrics
        return
    metrics, _ = result
    print("Test accuracy after %d steps: %.4f (loss %.4f)" % (
        metrics["global_step"], metrics["accuracy"], metrics["loss"]))


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
