"""Each cell of contrib.rnn, cudnn_rnn, grid_rnn, and their wrappers; encoders and decoders of legacy_seq2seq.

PhasedLSTMCell is left out: it keeps its periods in reference variables, whose updates race with reads in the backward loop, so two runs of
TensorFlow 1.15.5 end with other values. Adam is not used: it makes much of a rounding in a gradient near zero.
"""

import tensorflow as tf
from job import TRAIN, config, inputs, normal, run, whole
from tensorflow.contrib import cudnn_rnn, grid_rnn, legacy_seq2seq, rnn
from tensorflow.contrib.rnn.python.ops import rnn_cell

WIDTH = 4
CELLS = {
    "attention": lambda: rnn.AttentionCellWrapper(rnn.GRUCell(WIDTH), 2, state_is_tuple=True),
    "bidirectional_grid": lambda: rnn.BidirectionalGridLSTMCell(2, feature_size=2, frequency_skip=1, num_frequency_blocks=[3]),
    "coupled": lambda: rnn.CoupledInputForgetGateLSTMCell(WIDTH, use_peepholes=True, layer_norm=True),
    "cudnn_gru": lambda: cudnn_rnn.CudnnCompatibleGRUCell(WIDTH),
    "cudnn_lstm": lambda: cudnn_rnn.CudnnCompatibleLSTMCell(WIDTH),
    "dropout": lambda: rnn.DropoutWrapper(rnn.BasicLSTMCell(WIDTH), 0.7, 0.8, seed=21),
    "glstm": lambda: rnn.GLSTMCell(WIDTH, number_of_groups=2),
    "grid": lambda: rnn.GridLSTMCell(2, True, feature_size=2, frequency_skip=1, num_frequency_blocks=[3], state_is_tuple=True),
    "grid2": lambda: grid_rnn.Grid2LSTMCell(WIDTH),
    "gru_block": lambda: rnn.GRUBlockCellV2(WIDTH),
    "highway": lambda: rnn.HighwayWrapper(rnn.GRUCell(WIDTH)),
    "indrnn": lambda: rnn.IndRNNCell(WIDTH),
    "indy_gru": lambda: rnn.IndyGRUCell(WIDTH),
    "indy_lstm": lambda: rnn.IndyLSTMCell(WIDTH),
    "intersection": lambda: rnn.IntersectionRNNCell(WIDTH),
    "layer_norm_basic": lambda: rnn.LayerNormBasicLSTMCell(WIDTH, dropout_keep_prob=0.8, dropout_prob_seed=22),
    "layer_norm": lambda: rnn_cell.LayerNormLSTMCell(WIDTH, num_proj=WIDTH, layer_norm=True),
    "lstm_block": lambda: rnn.LSTMBlockCell(WIDTH, use_peephole=True),
    "nas": lambda: rnn.NASCell(WIDTH, num_proj=WIDTH, use_bias=True),
    "output_projection": lambda: rnn.OutputProjectionWrapper(rnn.InputProjectionWrapper(rnn.GRUCell(3), 5), WIDTH),
    "residual": lambda: rnn.ResidualWrapper(rnn.MultiRNNCell([rnn.LSTMCell(3, num_proj=WIDTH), rnn.BasicRNNCell(WIDTH)])),
    "sru": lambda: rnn.SRUCell(WIDTH),
    "time_frequency": lambda: rnn.TimeFreqLSTMCell(WIDTH, True, feature_size=WIDTH, frequency_skip=1),
    "ugrnn": lambda: rnn.UGRNNCell(WIDTH),
    "weight_norm": lambda: rnn_cell.WeightNormLSTMCell(WIDTH, use_peepholes=True),
}
STATIC = {
    *("attention", "bidirectional_grid", "grid", "time_frequency", "grid2"),  # these want their batch's size
    *("dropout", "layer_norm_basic"),  # the iterations of a loop draw random numbers in no order
}


def last(name, x):
    """The last output of a cell."""
    if name in STATIC:
        outputs, _ = rnn.static_rnn(CELLS[name](), tf.unstack(x, axis=1), dtype=tf.float32)
        return tf.concat(tf.contrib.framework.nest.flatten(outputs[-1]), 1)
    return tf.nn.dynamic_rnn(CELLS[name](), x, dtype=tf.float32)[0][:, -1]


def others(x):
    """What is no cell."""
    steps = tf.unstack(x, axis=1)
    major = tf.transpose(x, [1, 0, 2])
    yield rnn.LSTMBlockFusedCell(WIDTH)(major, dtype=tf.float32)[0][-1]
    yield rnn.TimeReversedFusedRNN(rnn.FusedRNNCellAdaptor(rnn.GRUCell(WIDTH), True))(major, dtype=tf.float32)[0][0]
    yield rnn.stack_bidirectional_dynamic_rnn([rnn.GRUCell(3)] * 1, [rnn.GRUCell(3)] * 1, x, dtype=tf.float32)[0][:, -1]
    with tf.variable_scope("static"):
        yield rnn.stack_bidirectional_rnn([rnn.GRUCell(2)], [rnn.GRUCell(2)], steps, dtype=tf.float32)[0][-1]
    with tf.variable_scope("convolution"):
        images = tf.reshape(x, [4, 5, 2, 2, 1])
        yield tf.layers.flatten(
            tf.nn.dynamic_rnn(
                rnn.Conv2DLSTMCell(input_shape=[2, 2, 1], output_channels=2, kernel_shape=[2, 2]), images, dtype=tf.float32
            )[0][:, -1]
        )
    with tf.variable_scope("tied"):
        yield legacy_seq2seq.tied_rnn_seq2seq(steps[:3], steps[3:], rnn.GRUCell(WIDTH))[0][-1]
    with tf.variable_scope("decoder"):
        memory = tf.stack(steps[:3], 1)
        yield legacy_seq2seq.attention_decoder(steps[3:], tf.zeros([4, WIDTH]), memory, rnn.GRUCell(WIDTH))[0][-1]


def words(ids):
    """Decoders over words."""
    steps = tf.unstack(ids, axis=1)
    outputs, _ = legacy_seq2seq.embedding_attention_seq2seq(steps[:3], steps[3:], rnn.LSTMCell(3), 7, 7, 4)
    weights = [tf.ones([4])] * len(steps[3:])
    return legacy_seq2seq.sequence_loss(outputs, steps[3:], weights)


def model_fn(features, labels, mode):
    """All of them, each with its part of the loss."""
    x = features["x"]
    found = {}
    for name in sorted(CELLS):
        with tf.variable_scope(name):
            found[name] = tf.reduce_sum(last(name, x), 1)
    for number, output in enumerate(others(x)):
        found["other%d" % number] = tf.reduce_sum(output, 1)
    loss = tf.add_n([tf.reduce_mean((one - labels) ** 2) for _, one in sorted(found.items())]) + words(features["ids"])
    train_op = None
    if mode == TRAIN:
        train_op = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, found, loss, train_op)


FEATURES = {"x": normal(0, 12, 5, WIDTH), "ids": whole(1, 7, 12, 5)}
run(tf.estimator.Estimator(model_fn, config=config()), inputs(FEATURES, normal(2, 12)), predicts=False)
