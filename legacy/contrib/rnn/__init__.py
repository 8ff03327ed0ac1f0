"""``tf.contrib.rnn``: core's cells, block LSTMs, a cell with layer normalisation, and stacks of bidirectional layers."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import rnn

from estimator_bridge.legacy.contrib.rnn.bidirectional import stack_bidirectional_dynamic_rnn, stack_bidirectional_rnn
from estimator_bridge.legacy.contrib.rnn.block_cells import LayerRNNCell, LSTMBlockCell
from estimator_bridge.legacy.contrib.rnn.block_sequence import LSTMBlockFusedCell, LSTMBlockWrapper
from estimator_bridge.legacy.contrib.rnn.fused import FusedRNNCell, FusedRNNCellAdaptor, TimeReversedFusedRNN
from estimator_bridge.legacy.contrib.rnn.layer_norm import LayerNormBasicLSTMCell

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "FusedRNNCell",
    "FusedRNNCellAdaptor",
    "GRUCell",
    "LSTMBlockCell",
    "LSTMBlockFusedCell",
    "LSTMBlockWrapper",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerNormBasicLSTMCell",
    "LayerRNNCell",
    "MultiRNNCell",
    "RNNCell",
    "ResidualWrapper",
    "TimeReversedFusedRNN",
    "best_effort_input_batch_size",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "transpose_batch_time",
]

BasicLSTMCell = tf.nn.rnn_cell.BasicLSTMCell
BasicRNNCell = tf.nn.rnn_cell.BasicRNNCell
DeviceWrapper = tf.nn.rnn_cell.DeviceWrapper
DropoutWrapper = tf.nn.rnn_cell.DropoutWrapper
GRUCell = tf.nn.rnn_cell.GRUCell
LSTMCell = tf.nn.rnn_cell.LSTMCell
LSTMStateTuple = tf.nn.rnn_cell.LSTMStateTuple
MultiRNNCell = tf.nn.rnn_cell.MultiRNNCell
RNNCell = tf.nn.rnn_cell.RNNCell
ResidualWrapper = tf.nn.rnn_cell.ResidualWrapper
best_effort_input_batch_size = rnn._best_effort_input_batch_size
static_bidirectional_rnn = tf.nn.static_bidirectional_rnn
static_rnn = tf.nn.static_rnn
static_state_saving_rnn = tf.nn.static_state_saving_rnn
transpose_batch_time = rnn._transpose_batch_time
