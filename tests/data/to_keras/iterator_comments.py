"""Comments inside of what an iterator takes."""

import tensorflow as tf


def input_fn():
    return (
        # above
        tf.data.Dataset.range(3)
        .shuffle(9)
        # between
        .repeat()
        .make_one_shot_iterator()
        .get_next()
    )


def other_input_fn():
    iterator = tf.data.Dataset.range(3).make_one_shot_iterator()  # beside
    x = iterator.get_next()  # taken
    return (
        x,  # one
        x,
    )
