"""The rows of train.py, which imports this module."""

import tensorflow as tf


def input_fn():
    rows = tf.data.Dataset.range(12).map(lambda number: ({"x": tf.to_float(number)}, tf.to_float(number)))
    return rows.batch(4).make_one_shot_iterator().get_next()
