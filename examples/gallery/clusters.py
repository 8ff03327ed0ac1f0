"""Finds groups of customers by k-means, a canned Estimator.

A TensorFlow 1 program as such programs were written in 2018. It needs tensorflow 1.15 alone:

    python clusters.py

The customers are made up: five groups in the plane, of different size and spread.
"""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import tempfile

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Where checkpoints go. Default: a new temporary folder.")
flags.DEFINE_integer("num_clusters", 5, "Number of groups.")
flags.DEFINE_integer("num_rounds", 6, "How often all customers are seen.")
flags.DEFINE_integer("seed", 11, "Seed of the customers and of the first centers.")


def make_customers():
    """Returns points of five groups, in random order."""
    random = np.random.RandomState(FLAGS.seed)
    centers = random.uniform(-10, 10, size=[5, 2])
    sizes, spreads = [300, 200, 150, 100, 50], [1.0, 0.5, 1.5, 0.7, 0.3]
    points = [center + spread * random.randn(size, 2) for center, size, spread in zip(centers, sizes, spreads)]
    return random.permutation(np.concatenate(points)).astype(np.float32)


def main(_):
    customers = make_customers()

    def once():
        return tf.data.Dataset.from_tensors(customers)

    def again_and_again():
        return once().repeat()

    config = tf.estimator.RunConfig(FLAGS.model_dir or tempfile.mkdtemp(), tf_random_seed=FLAGS.seed)
    kmeans = tf.estimator.experimental.KMeans(FLAGS.num_clusters, use_mini_batch=False, seed=FLAGS.seed, config=config)
    before = None
    for _ in range(FLAGS.num_rounds):
        kmeans.train(again_and_again, steps=1)
        centers = kmeans.cluster_centers()
        moved = np.inf if before is None else np.abs(centers - before).max()
        before = centers
        print("score {:.4f}, the centers moved by {:.4g}".format(kmeans.score(once), moved))
    groups = np.bincount(list(kmeans.predict_cluster_index(once)), minlength=FLAGS.num_clusters)
    print("customers in each group:", sorted(groups.tolist(), reverse=True))


if __name__ == "__main__":
    tf.app.run()
