"""Trainings by a plain TensorFlow 1 script, for Python 3.7 and later: prints steps per second for each line MODEL on stdin.

The speed comes from the event file that Estimator writes every 100 steps by default, so each executor has the same clock.
"""

import glob
import os
import sys
import tempfile

import tensorflow as tf

from batches import BATCH, STEPS, VOCABULARY, WARM_UP, arrays

tf = getattr(tf.compat, "v1", tf)  # a native TensorFlow 2.15 runs the same lines; 1.15 and the runner have them at the top


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
    table = tf.get_variable("table", [VOCABULARY, 32])
    hidden = tf.reduce_mean(tf.nn.embedding_lookup(table, features["ids"]), axis=1)
    hidden = tf.layers.dense(hidden, 64, activation=tf.nn.relu)
    return tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(hidden, 10))


def rnn(features, labels):
    _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(32), tf.reshape(features["x"], [-1, 16, 4]), dtype=tf.float32)
    return tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(state.h, 10))


MODELS = {"dense": dense, "convolutional": convolutional, "embedding": embedding, "rnn": rnn}


def model_fn(features, labels, mode, params):
    loss = MODELS[params["model"]](features, labels)
    train_op = tf.train.AdagradOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(arrays()).repeat().batch(BATCH).prefetch(4)


def steps_per_second(folder):
    times = {}
    for path in glob.glob(os.path.join(folder, "events.out.tfevents.*")):
        for event in tf.train.summary_iterator(path):
            if any(value.tag == "global_step/sec" for value in event.summary.value):
                times[event.step] = event.wall_time
    last = max(times)
    return (last - WARM_UP) / (times[last] - times[WARM_UP])


def main():
    tf.logging.set_verbosity(tf.logging.INFO)
    for line in sys.stdin:
        model = line.strip()
        config = tf.estimator.RunConfig(model_dir=tempfile.mkdtemp(), tf_random_seed=1)
        estimator = tf.estimator.Estimator(model_fn, config=config, params={"model": model})
        estimator.train(input_fn, max_steps=WARM_UP + STEPS[model])
        tf.summary.FileWriterCache.clear()  # closes the event file
        print("steps per second: %.2f" % steps_per_second(config.model_dir))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
