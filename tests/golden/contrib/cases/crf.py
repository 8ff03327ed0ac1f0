"""Cases of tf.contrib.crf: lengths from 0 to the whole, a single step, either integer type."""

import numpy as np
import tensorflow as tf
from record import floats, seeded

crf = tf.contrib.crf
TAGS = [[0, 2, 1, 1], [2, 2, 0, 1], [1, 0, 0, 0], [2, 1, 0, 0]]
LENGTHS = [4, 2, 1, 0]


def scores():
    inputs, transitions = floats(4, 4, 3), floats(3, 3)
    tags, lengths = tf.constant(TAGS), tf.constant(LENGTHS)
    return {
        "unary": crf.crf_unary_score(tags, lengths, inputs),
        "binary": crf.crf_binary_score(tags, lengths, transitions),
        "sequence": crf.crf_sequence_score(inputs, tags, lengths, transitions),
        "log_norm": crf.crf_log_norm(inputs, lengths, transitions),
        "wide": crf.crf_sequence_score(inputs, tf.cast(tags, tf.int64), tf.cast(lengths, tf.int64), transitions),
        "wide_log_norm": crf.crf_log_norm(inputs, tf.cast(lengths, tf.int64), transitions),
    }


def one_step():
    inputs, transitions = floats(3, 1, 3), tf.constant(seeded("transitions", [3, 3]), tf.float32)
    tags, lengths = tf.constant([[1], [0], [2]]), tf.constant([1, 0, 1])
    return {
        "sequence": crf.crf_sequence_score(inputs, tags, lengths, transitions),
        "log_norm": crf.crf_log_norm(inputs, lengths, transitions),
        "decoded": crf.crf_decode(inputs, transitions, lengths),
    }


def multitag():
    inputs, transitions = floats(2, 3, 3), floats(3, 3)
    bitmap = np.array([[[1, 0, 1], [1, 1, 1], [0, 1, 0]], [[0, 0, 1], [1, 0, 0], [1, 1, 0]]], bool)
    return {
        "several": crf.crf_multitag_sequence_score(inputs, tf.constant(bitmap), tf.constant([3, 2]), transitions),
        "single": crf.crf_multitag_sequence_score(inputs[:, :1], tf.constant(bitmap[:, :1]), tf.constant([1, 1]), transitions),
    }


def log_likelihood():
    inputs = floats(4, 4, 3)
    with tf.variable_scope("chain"):
        likelihood, transitions = crf.crf_log_likelihood(inputs, tf.constant(TAGS), tf.constant(LENGTHS))
    given, same = crf.crf_log_likelihood(inputs, tf.constant(TAGS), tf.constant(LENGTHS), floats(3, 3))
    return {"likelihood": likelihood, "variable": transitions.name, "given": given, "same": same}


def decode():
    potentials, transitions = floats(4, 4, 3, scale=2), floats(3, 3)
    ties = tf.zeros([1, 3, 2])
    return {
        "narrow": crf.crf_decode(potentials, transitions, tf.constant(LENGTHS)),
        "wide": crf.crf_decode(potentials, transitions, tf.constant(LENGTHS, tf.int64)),
        "ties": crf.crf_decode(ties, tf.zeros([2, 2]), tf.constant([3])),
    }


def decode_of_unknown_length():
    potentials = tf.placeholder_with_default(seeded("potentials", [2, 3, 2]).astype(np.float32), [None, None, 2])
    tags = tf.placeholder_with_default(np.array([[0, 1, 0], [1, 1, 0]], np.int32), [None, None])
    lengths, transitions = tf.constant([3, 2]), floats(2, 2)
    return {
        "decoded": crf.crf_decode(potentials, transitions, lengths),
        "log_norm": crf.crf_log_norm(potentials, lengths, transitions),
        "sequence": crf.crf_sequence_score(potentials, tags, lengths, transitions),
    }


def viterbi_decode():
    tags, score = crf.viterbi_decode(seeded("score", [5, 3]), seeded("transitions", [3, 3]))
    single, single_score = crf.viterbi_decode(seeded("score", [1, 3]), seeded("transitions", [3, 3]))
    return {"tags": [int(tag) for tag in tags], "score": score, "single": [int(tag) for tag in single], "one": single_score}
