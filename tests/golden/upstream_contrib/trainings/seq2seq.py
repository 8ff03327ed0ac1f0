"""A translator: each attention with another helper; greedy and beam search decoding."""

import tensorflow as tf
from job import EVAL, PREDICT, config, inputs, run, whole
from tensorflow.contrib import rnn, seq2seq

WORDS, UNITS, START, END = 11, 6, 1, 2
SOURCE, TARGET = whole(0, WORDS, 12, 5), whole(1, WORDS, 12, 4)
LENGTHS = 1 + whole(2, 4, 12)


def attention(name, memory, lengths):
    """An attention mechanism."""
    makers = {
        "luong": lambda: seq2seq.LuongAttention(UNITS, memory, lengths),
        "scaled_luong": lambda: seq2seq.LuongAttention(UNITS, memory, lengths, scale=True),
        "bahdanau": lambda: seq2seq.BahdanauAttention(UNITS, memory, lengths),
        "normed_bahdanau": lambda: seq2seq.BahdanauAttention(UNITS, memory, lengths, normalize=True),
        "monotonic_luong": lambda: seq2seq.LuongMonotonicAttention(UNITS, memory, lengths, mode="parallel"),
        "monotonic_bahdanau": lambda: seq2seq.BahdanauMonotonicAttention(UNITS, memory, lengths, mode="recursive"),
    }
    return makers[name]()


def helper(name, words, lengths, embedding):
    """A helper of training: the target's own words, or what the decoder gave. No shares between, which would be of random numbers."""
    if name == "bahdanau":
        return seq2seq.ScheduledEmbeddingTrainingHelper(words, lengths, embedding, 0.0, seed=11, scheduling_seed=12)
    if name == "scaled_luong":
        project = tf.layers.Dense(UNITS, use_bias=False, name="choice")
        return seq2seq.ScheduledOutputTrainingHelper(words, lengths, 1.0, seed=13, next_inputs_fn=project)
    return seq2seq.TrainingHelper(words, lengths)


def losses(features, targets, memory, state, embedding):
    """The loss and the share of right words with each attention."""
    start = tf.fill([tf.shape(targets)[0], 1], START)
    words = tf.nn.embedding_lookup(embedding, tf.concat([start, targets[:, :-1]], 1))
    lengths = features["target_lengths"]
    weights = tf.sequence_mask(lengths, tf.reduce_max(lengths), tf.float32)
    targets = targets[:, : tf.reduce_max(lengths)]
    found = []
    for name in ("luong", "scaled_luong", "bahdanau", "normed_bahdanau", "monotonic_luong", "monotonic_bahdanau"):
        with tf.variable_scope(name):
            mechanism = attention(name, memory, features["lengths"])
            cell = seq2seq.AttentionWrapper(rnn.GRUCell(UNITS), mechanism, UNITS, output_attention=name != "bahdanau")
            initial = cell.zero_state(tf.shape(targets)[0], tf.float32).clone(cell_state=state)
            layer = tf.layers.Dense(WORDS, name="words")
            decoder = seq2seq.BasicDecoder(cell, helper(name, words, lengths, embedding), initial, layer)
            outputs, _, _ = seq2seq.dynamic_decode(decoder, swap_memory=True)
            found.append(seq2seq.sequence_loss(outputs.rnn_output, targets, weights))
    right = tf.metrics.accuracy(targets, outputs.sample_id, weights)
    return tf.add_n(found), {"right": right}


def decoded(features, memory, state, embedding):
    """What the decoder writes on its own."""
    batch = tf.shape(memory)[0]
    starts = tf.fill([batch], START)
    layer = tf.layers.Dense(WORDS, name="words")
    with tf.variable_scope("scaled_luong"):
        greedy_cell = seq2seq.AttentionWrapper(
            rnn.GRUCell(UNITS), attention("scaled_luong", memory, features["lengths"]), UNITS, alignment_history=True
        )
        initial = greedy_cell.zero_state(batch, tf.float32).clone(cell_state=state)
        greedy = seq2seq.BasicDecoder(greedy_cell, seq2seq.GreedyEmbeddingHelper(embedding, starts, END), initial, layer)
        outputs, final, lengths = seq2seq.dynamic_decode(greedy, maximum_iterations=6)
    with tf.variable_scope("scaled_luong", reuse=True):
        tiled = seq2seq.tile_batch(memory, 3)
        mechanism = attention("scaled_luong", tiled, seq2seq.tile_batch(features["lengths"], 3))
        cell = seq2seq.AttentionWrapper(rnn.GRUCell(UNITS), mechanism, UNITS)
        initial = cell.zero_state(batch * 3, tf.float32).clone(cell_state=seq2seq.tile_batch(state, 3))
        beams = seq2seq.BeamSearchDecoder(cell, embedding, starts, END, initial, 3, layer, length_penalty_weight=0.6)
        beam, _, beam_lengths = seq2seq.dynamic_decode(beams, maximum_iterations=6, scope="decoder")
    return {
        "greedy": outputs.sample_id,
        "lengths": lengths,
        "alignments": tf.transpose(final.alignment_history.stack(), [1, 0, 2]),
        "beams": beam.predicted_ids,
        "beam_scores": beam.beam_search_decoder_output.scores,
        "beam_lengths": beam_lengths,
    }


def model_fn(features, labels, mode):
    """An encoder in both directions, and a decoder."""
    embedding = tf.get_variable("embedding", [WORDS, UNITS])
    (forward, backward), (state, other) = tf.nn.bidirectional_dynamic_rnn(
        rnn.GRUCell(UNITS),
        rnn.GRUCell(UNITS),
        tf.nn.embedding_lookup(embedding, features["source"]),
        features["lengths"],
        dtype=tf.float32,
    )
    memory, state = tf.concat([forward, backward], 2), state + other
    if mode == PREDICT:
        return tf.estimator.EstimatorSpec(mode, decoded(features, memory, state, embedding))
    loss, metrics = losses(features, labels, memory, state, embedding)
    if mode == EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    train_op = tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), 0.05, "Adam", clip_gradients=5.0)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


FEATURES = {"source": SOURCE, "lengths": LENGTHS, "target_lengths": 1 + whole(3, 4, 12)}
run(tf.estimator.Estimator(model_fn, config=config()), inputs(FEATURES, TARGET))
