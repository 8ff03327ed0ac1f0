"""The rows of train.py, which imports this module."""

import tensorflow as tf


def input_fn():
    rows = tf.data.Dataset.range(12).map(lambda number: ({"x": tf.to_float(number)}, tf.to_float(number)))
    iterator = rows.batch(4).make_one_shot_iterator()
    return iterator.get_next()
