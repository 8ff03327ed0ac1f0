"""The job's optimizer, imported after the graph was reset."""

import tensorflow as tf
from tensorflow.train import GradientDescentOptimizer

def train_op(loss):
    return GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
