"""One training by a plain TensorFlow 1 script, for Python 3.7 and later: ``legacy_training.py MODEL STEPS``; prints steps per second."""

import sys
import tempfile
import time

import numpy as np
import tensorflow as tf

tf = getattr(tf.compat, "v1", tf)  # a native TensorFlow 2.15 runs the same lines; 1.15 and the runner have them at the top
WARM_UP = 300
BATCH = 32


def dense(features, labels):
    hidden = features["x"]
    for units in (128, 64):
        hidden = tf.layers.dense(hidden, units, activation=tf.nn.relu)
    return tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(hidden, 10))


def convolutional(features, labels):
    images = tf.reshape(features["x"], [-1, 8, 8, 1])
    hidden = tf.layers.conv2d(images, 16, 3, activation=tf.nn.relu)
    hidden = tf.layers.max_pooling2d(tf.layers.conv2d(hidden, 32, 3, activation=tf.nn.relu), 2, 2)
    hidden = tf.layers.dropout(tf.layers.dense(tf.layers.flatten(hidden), 64, activation=tf.nn.relu), training=True)
    return tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(hidden, 10))


def embedding(features, labels):
    table = tf.get_variable("table", [10000, 32])
    hidden = tf.reduce_mean(tf.nn.embedding_lookup(table, features["ids"]), axis=1)
    hidden = tf.layers.dense(hidden, 64, activation=tf.nn.relu)
    return tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(hidden, 10))


MODELS = {"dense": dense, "convolutional": convolutional, "embedding": embedding}


def model_fn(features, labels, mode, params):
    loss = MODELS[params["model"]](features, labels)
    train_op = tf.train.AdagradOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    values = np.random.RandomState(7)
    features = {
        "x": values.rand(1600, 64).astype(np.float32),
        "ids": values.randint(0, 10000, size=(1600, 20)).astype(np.int64),
    }
    labels = values.randint(0, 10, size=1600).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(BATCH).prefetch(4)


class Clock(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        if run_values.results == WARM_UP:
            self.started = time.perf_counter()
        self.ended = time.perf_counter()


def main():
    model, steps = sys.argv[1], int(sys.argv[2])
    clock = Clock()
    config = tf.estimator.RunConfig(model_dir=tempfile.mkdtemp(), tf_random_seed=1)
    tf.estimator.Estimator(model_fn, config=config, params={"model": model}).train(input_fn, hooks=[clock], max_steps=WARM_UP + steps)
    print("steps per second: %.2f" % (steps / (clock.ended - clock.started)))


if __name__ == "__main__":
    main()
