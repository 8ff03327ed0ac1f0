"""Cases of tf.contrib.seq2seq."""

import tensorflow as tf
from record import floats

seq2seq = tf.contrib.seq2seq


def sequence_loss():
    logits, targets = floats(2, 3, 4), tf.constant([[0, 3, 1], [2, 2, 0]])
    weights = tf.constant([[1.0, 0.5, 0.0], [1.0, 0.0, 0.0]])
    both = [True, False]
    reductions = [
        (time, batch, sum_time, sum_batch)
        for time in both
        for batch in both
        for sum_time in both
        for sum_batch in both
        if not (time and sum_time) and not (batch and sum_batch)
    ]
    return {"%s-%s-%s-%s" % asked: seq2seq.sequence_loss(logits, targets, weights, *asked) for asked in reductions}


def sequence_loss_options():
    logits, targets, weights = floats(2, 3, 4), tf.constant([[0, 3, 1], [2, 2, 0]]), tf.zeros([2, 3])

    def squared(labels, logits):
        return tf.reduce_sum((logits - tf.one_hot(labels, 4)) ** 2, 1)

    return [
        seq2seq.sequence_loss(logits, targets, weights),
        seq2seq.sequence_loss(logits, targets, tf.ones([2, 3]), softmax_loss_function=squared, name="mine"),
        _raised(lambda: seq2seq.sequence_loss(logits[0], targets, weights)),
        _raised(lambda: seq2seq.sequence_loss(logits, targets[0], weights)),
        _raised(lambda: seq2seq.sequence_loss(logits, targets, weights[0])),
        _raised(lambda: seq2seq.sequence_loss(logits, targets, weights, sum_over_batch=True, average_across_timesteps=False)),
        _raised(lambda: seq2seq.sequence_loss(logits, targets, weights, sum_over_timesteps=True)),
    ]


def hardmax():
    return [seq2seq.hardmax(floats(2, 3)), seq2seq.hardmax(floats(2, 2, 3)), seq2seq.hardmax(tf.constant([1.0, 1.0]))]


def tile_batch():
    state = tf.nn.rnn_cell.LSTMStateTuple(floats(2, 3), floats(2, 2, 1))
    unknown = tf.placeholder_with_default([1, 2], [None])
    tiled = seq2seq.tile_batch(unknown, 3)
    return [seq2seq.tile_batch(state, 2), tiled, tiled.shape.as_list(), seq2seq.tile_batch(floats(2, 3), 2).shape.as_list()]


def _raised(call):
    try:
        call()
    except ValueError as error:
        return type(error).__name__
    return "nothing raised"
