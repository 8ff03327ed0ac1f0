"""A translator with attention, which stays whole: a decoder that is given the words, and one that goes on with its own."""
import sys
import numpy as np
import tensorflow as tf

KIND = sys.argv[1]


def waves(shape, dtype=tf.float32, partition_info=None):
    """First values that no generator draws."""
    return tf.reshape(0.5 * tf.cos(1.7 * tf.range(np.prod(shape), dtype=tf.float32)), shape)


class OwnHelper(tf.contrib.seq2seq.GreedyEmbeddingHelper):
    """Gives the decoder the likeliest word but one."""

    def __init__(self, *given):
        tf.contrib.seq2seq.GreedyEmbeddingHelper.__init__(self, *given)

    def sample(self, time, outputs, state, name=None):
        return tf.nn.top_k(outputs, 2).indices[:, 1]


class OwnDecoder(tf.contrib.seq2seq.BasicDecoder):
    """Doubles what the cell gives."""

    def step(self, time, inputs, state, name=None):
        outputs, state = self._cell(inputs, state)
        outputs = self._output_layer(2.0 * outputs)
        words = self._helper.sample(time=time, outputs=outputs, state=state)
        finished, inputs, state = self._helper.next_inputs(time=time, outputs=outputs, state=state, sample_ids=words)
        return tf.contrib.seq2seq.BasicDecoderOutput(outputs, words), state, inputs, finished


def model_fn(features, labels, mode, params):
    with tf.variable_scope("translator", initializer=waves):
        return spec_of(features, labels, mode, params)


def spec_of(features, labels, mode, params):
    words = tf.contrib.layers.embed_sequence(features["words"], 12, 6, scope="source")
    encoder = tf.nn.rnn_cell.GRUCell(8)
    memory, state = tf.nn.dynamic_rnn(encoder, words, features["length"], dtype=tf.float32)
    length, beams = features["length"], 3 if KIND == "beams" and mode == tf.estimator.ModeKeys.PREDICT else 1
    memory, state, length = tf.contrib.seq2seq.tile_batch((memory, state, length), beams)
    if KIND == "luong":
        attention = tf.contrib.seq2seq.LuongAttention(8, memory, memory_sequence_length=length, scale=True)
    else:
        attention = tf.contrib.seq2seq.BahdanauAttention(7, memory, length, normalize=KIND == "normalized")
    cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(8), attention, attention_layer_size=5, alignment_history=KIND == "luong")
    batch = tf.shape(features["words"])[0]
    first = cell.zero_state(batch * beams, tf.float32).clone(cell_state=state)
    table = tf.get_variable("target", [12, 6])
    to_words = tf.layers.Dense(12, name="to_words")
    if mode == tf.estimator.ModeKeys.PREDICT:
        if KIND == "beams":
            decoder = tf.contrib.seq2seq.BeamSearchDecoder(cell, table, tf.fill([batch], 1), 2, first, 3, to_words, length_penalty_weight=0.6)
            found, _, lengths = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=6)
            scores = found.beam_search_decoder_output.scores[:, 0]
            ends = tf.reduce_sum(tf.to_float(found.predicted_ids) * 1.1 ** tf.to_float(tf.range(3)), [1, 2])
            return tf.estimator.EstimatorSpec(mode, predictions={"lengths": ends, "last": scores})
        if KIND == "derived":
            decoder = OwnDecoder(cell, OwnHelper(table, tf.fill([batch], 1), 2), first, to_words)
        else:
            helper = tf.contrib.seq2seq.GreedyEmbeddingHelper(table, tf.fill([batch], 1), 2)
            decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, first, to_words)
        found, _, lengths = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=6)
        return tf.estimator.EstimatorSpec(mode, predictions={"lengths": lengths, "last": found.rnn_output[:, 0]})
    given = tf.nn.embedding_lookup(table, tf.concat([tf.ones([batch, 1], tf.int64), labels[:, :-1]], 1))
    lengths = tf.reduce_sum(tf.to_int32(tf.not_equal(labels, 0)), 1)
    if KIND == "scheduled":
        helper = tf.contrib.seq2seq.ScheduledEmbeddingTrainingHelper(given, lengths, table, 0.0)
    else:
        helper = tf.contrib.seq2seq.TrainingHelper(given, lengths)
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, first, to_words)
    outputs, last, _ = tf.contrib.seq2seq.dynamic_decode(decoder, impute_finished=True, swap_memory=True)
    longest = tf.reduce_max(lengths)
    weights = tf.sequence_mask(lengths, longest, dtype=tf.float32)
    loss = tf.contrib.seq2seq.sequence_loss(outputs.rnn_output, labels[:, :longest], weights)
    if KIND == "luong":
        loss += 0.01 * tf.reduce_mean(last.alignment_history.stack())
    if mode == tf.estimator.ModeKeys.EVAL:
        right = tf.metrics.accuracy(labels[:, :longest], outputs.sample_id, weights)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"right": right})
    train_op = tf.train.AdamOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    draw = np.random.RandomState(1)
    lengths = draw.randint(2, 6, 40)
    words, target = draw.randint(3, 12, [40, 5]), draw.randint(3, 12, [40, 6])
    for row, length in enumerate(lengths):
        words[row, length:], target[row, length] = 0, 2
        target[row, length + 1 :] = 0
    features = {"words": words.astype("int64"), "length": lengths.astype("int32")}
    return tf.data.Dataset.from_tensor_slices((features, target.astype("int64"))).batch(8, drop_remainder=True).repeat(3)


def main():
    estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.05})
    estimator.train(input_fn, steps=10)
    found, predicted = estimator.evaluate(input_fn), list(estimator.predict(input_fn))[:8]
    print("found", found["loss"], found["right"], *(row["lengths"] for row in predicted), *predicted[0]["last"][:3])


if __name__ == "__main__":
    main()
