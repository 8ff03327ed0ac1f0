"""Trains two towers on made-up visits: one for people, one for articles; their product says who reads what.

A TensorFlow 1 program as recommenders were written in 2018 and 2019. It needs tensorflow 1.15 alone:

    python two_tower.py --train_steps=300

Each tower begins with a table, of people or of articles. A person reads an article if their hidden tastes point the same way. Three hundred
steps take a few seconds on a CPU.
"""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import tempfile

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Where checkpoints and summaries go. Default: a new temporary folder.")
flags.DEFINE_integer("train_steps", 300, "Number of training steps in total.")
flags.DEFINE_integer("batch_size", 256, "Visits per training step.")
flags.DEFINE_integer("units", 16, "Columns of the tables.")
flags.DEFINE_float("learning_rate", 0.5, "Learning rate of Adagrad.")
flags.DEFINE_integer("seed", 7, "Seed of the visits and of the initial weights.")

PEOPLE = 200
ARTICLES = 100
NUM_VISITS = 60000


def make_visits():
    """Returns ({"person": ids, "article": ids, "hour": 0 to 23}, whether each was read)."""
    random = np.random.RandomState(FLAGS.seed)
    tastes = random.normal(size=[PEOPLE, 3]), random.normal(size=[ARTICLES, 3])
    person, article = random.randint(0, PEOPLE, NUM_VISITS), random.randint(0, ARTICLES, NUM_VISITS)
    read = np.sum(tastes[0][person] * tastes[1][article], axis=1) + 0.3 * random.normal(size=NUM_VISITS) > 0
    hour = random.randint(0, 24, NUM_VISITS)
    features = {"person": person, "article": article, "hour": hour}
    return {name: ids.astype(np.int32) for name, ids in features.items()}, read.astype(np.float32)


def model_fn(features, labels, mode, params):
    """Two towers of a table and two layers; their product is the logit."""
    seeds = iter(range(params["seed"], params["seed"] + 100))

    def tower(name, ids, size, more):
        with tf.variable_scope(name):
            table = tf.get_variable(
                "table", [size, params["units"]], initializer=tf.truncated_normal_initializer(stddev=1.0, seed=next(seeds)))
            net = tf.concat([tf.nn.embedding_lookup(table, ids)] + more, axis=1)
            for units, activation in ((32, tf.nn.relu), (params["units"], None)):
                net = tf.layers.dense(
                    net, units, activation, kernel_initializer=tf.glorot_uniform_initializer(seed=next(seeds)))
            return net

    person = tower("person", features["person"], PEOPLE, [tf.one_hot(features["hour"], 24)])
    article = tower("article", features["article"], ARTICLES, [])
    logits = tf.reduce_sum(person * article, axis=1)
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels, tf.round(tf.sigmoid(logits)))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    optimizer = tf.train.AdagradOptimizer(params["learning_rate"])
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    features, read = make_visits()
    known = NUM_VISITS * 9 // 10

    def part(start, end):
        return tf.data.Dataset.from_tensor_slices(({name: ids[start:end] for name, ids in features.items()}, read[start:end]))

    config = tf.estimator.RunConfig(
        model_dir=FLAGS.model_dir or tempfile.mkdtemp(prefix="visits-"), tf_random_seed=FLAGS.seed, save_checkpoints_steps=100)
    params = {"units": FLAGS.units, "learning_rate": FLAGS.learning_rate, "seed": FLAGS.seed}
    estimator = tf.estimator.Estimator(model_fn, params=params, config=config)
    train = tf.estimator.TrainSpec(
        lambda: part(0, known).repeat().shuffle(10000, seed=FLAGS.seed).batch(FLAGS.batch_size, drop_remainder=True),
        max_steps=FLAGS.train_steps)
    test = tf.estimator.EvalSpec(lambda: part(known, NUM_VISITS).batch(1000), steps=None)
    result = tf.estimator.train_and_evaluate(estimator, train, test)
    if result and result[0]:
        print("Test accuracy after {} steps: {:.4f}".format(result[0]["global_step"], result[0]["accuracy"]))


if __name__ == "__main__":
    tf.app.run(main)
