"""Cases of tf.contrib.rnn."""

import tensorflow as tf
from record import floats

rnn = tf.contrib.rnn


def block_lstm_cells():
    x, state = floats(2, 3), (floats(2, 2), floats(2, 2))
    cells = [
        rnn.LSTMBlockCell(2),
        rnn.LSTMBlockCell(2, forget_bias=0.5, cell_clip=0.3, use_peephole=True, name="peephole"),
    ]
    return [[cell(x, state), tuple(cell.state_size), cell.output_size] for cell in cells]


def block_lstm_in_dynamic_rnn():
    cell = rnn.LSTMBlockCell(2)
    return tf.nn.dynamic_rnn(cell, floats(2, 3, 2), sequence_length=[3, 1], dtype=tf.float32)


def block_lstm_refuses():
    return [
        _raised(lambda: rnn.LSTMBlockCell(2)(floats(2, 3), (floats(2, 2),) * 3)),
        _raised(lambda: rnn.LSTMBlockCell(2)(tf.placeholder(tf.float32, [2, None]), (floats(2, 2),) * 2)),
        _raised(lambda: rnn.LSTMBlockFusedCell(2)(floats(3, 2, 2))),
        _raised(lambda: rnn.LSTMBlockFusedCell(2)(floats(3, 2, 2), (floats(2, 2),) * 3)),
    ]


def fused_lstm():
    x = floats(3, 2, 2)
    cells = [rnn.LSTMBlockFusedCell(2), rnn.LSTMBlockFusedCell(3, 0.5, 0.2, True, name="peephole")]
    outputs = [cells[0](x, dtype=tf.float32), cells[0](x, dtype=tf.float32, sequence_length=[1, 3])]
    outputs.append(cells[1](x, initial_state=(floats(2, 3), floats(2, 3)), sequence_length=tf.constant([2, 0])))
    return [outputs, cells[1].num_units]


def fused_lstm_in_scope_and_resource():
    with tf.variable_scope("outer", use_resource=True):
        return rnn.LSTMBlockFusedCell(2, name="mine")(floats(2, 2, 2), dtype=tf.float32)


def own_block_wrapper():
    class Sum(rnn.LSTMBlockWrapper):
        @property
        def num_units(self):
            return 2

        def _call_cell(self, inputs, initial_cell_state, initial_output, dtype, sequence_length):
            sums = initial_cell_state + tf.cumsum(inputs, axis=0)
            return sums, initial_output + tf.tanh(sums)

    return [Sum()(floats(3, 2, 2), dtype=tf.float32, sequence_length=[2, 3]), Sum()(floats(2, 2, 2), dtype=tf.float32)]


def reversed_and_adapted():
    x = floats(3, 2, 2)
    backward = rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(2))
    adapted = rnn.FusedRNNCellAdaptor(rnn.BasicLSTMCell(2))
    dynamic = rnn.FusedRNNCellAdaptor(rnn.GRUCell(2), use_dynamic_rnn=True)
    steps = tf.unstack(x)
    return [
        backward(x, dtype=tf.float32),
        backward(x, dtype=tf.float32, sequence_length=[1, 3]),
        adapted(x, dtype=tf.float32, scope="adapted"),
        rnn.TimeReversedFusedRNN(adapted)(steps, dtype=tf.float32, scope="of_list"),
        dynamic(x, dtype=tf.float32, sequence_length=[2, 3]),
        dynamic(steps, initial_state=floats(2, 2), scope="of_list_too"),
        issubclass(rnn.TimeReversedFusedRNN, rnn.FusedRNNCell),
    ]


def block_gru_cells():
    x, state = floats(2, 3), floats(2, 2)
    cells = [rnn.GRUBlockCell(2), rnn.GRUBlockCellV2(num_units=2, name="second"), rnn.GRUBlockCell(cell_size=2, name="old")]
    return [[cell(x, state), cell.state_size, cell.output_size] for cell in cells]


def block_gru_in_dynamic_rnn():
    return tf.nn.dynamic_rnn(rnn.GRUBlockCellV2(2), floats(2, 3, 2), sequence_length=[3, 1], dtype=tf.float32)


def block_gru_refuses():
    return [
        _raised(rnn.GRUBlockCell),
        _raised(lambda: rnn.GRUBlockCell(2, 2)),
        _raised(lambda: rnn.GRUBlockCell(2)(floats(2, 3), floats(2, 3))),
    ]


def layer_norm_lstm():
    x, state = floats(2, 3), (floats(2, 4), floats(2, 4))
    with tf.variable_scope("first"):
        first = rnn.LayerNormBasicLSTMCell(4)
        outputs = [first(x, state)]
    with tf.variable_scope("second"):
        outputs.append(rnn.LayerNormBasicLSTMCell(4, 0.5, activation=tf.sigmoid, norm_gain=2.0, norm_shift=0.5)(x, state))
    with tf.variable_scope("third"):
        outputs.append(rnn.LayerNormBasicLSTMCell(4, layer_norm=False, dropout_keep_prob=0.5, dropout_prob_seed=3)(x, state))
    return [outputs, tuple(first.state_size), first.output_size]


def layer_norm_lstm_in_dynamic_rnn():
    cells = rnn.MultiRNNCell([rnn.LayerNormBasicLSTMCell(4), rnn.LayerNormBasicLSTMCell(5)])
    return tf.nn.dynamic_rnn(cells, floats(2, 3, 2), dtype=tf.float32)


def stacked_bidirectional():
    def cells(make):
        return [make(2), make(3)]

    x = floats(2, 3, 2)
    steps = tf.unstack(x, axis=1)
    return [
        rnn.stack_bidirectional_dynamic_rnn(
            cells(rnn.BasicLSTMCell), cells(rnn.GRUCell), x, dtype=tf.float32, sequence_length=[1, 3]
        ),
        rnn.stack_bidirectional_dynamic_rnn(
            cells(rnn.GRUCell),
            cells(rnn.BasicRNNCell),
            tf.transpose(x, [1, 0, 2]),
            [floats(2, 2), floats(2, 3)],
            [floats(2, 2), floats(2, 3)],
            time_major=True,
            scope="named",
        ),
        rnn.stack_bidirectional_rnn(cells(rnn.GRUCell), cells(rnn.GRUCell), steps, dtype=tf.float32, scope="static"),
        rnn.stack_bidirectional_rnn(
            cells(rnn.GRUCell),
            cells(rnn.GRUCell),
            steps,
            [floats(2, 2), floats(2, 3)],
            [floats(2, 2), floats(2, 3)],
            sequence_length=[3, 2],
            scope="given",
        ),
    ]


def stacked_bidirectional_refuses():
    one, x = [rnn.GRUCell(2)], floats(2, 3, 2)
    stack = rnn.stack_bidirectional_dynamic_rnn
    wrong = [([], one), (one, []), (tuple(one), one), (one, tuple(one)), (one, one * 2)]
    return [_raised(lambda pair=pair: stack(pair[0], pair[1], x, dtype=tf.float32)) for pair in wrong] + [
        _raised(lambda: stack(one, one, x, [floats(2, 2)] * 2, dtype=tf.float32)),
        _raised(lambda: stack(one, one, x, initial_states_bw=floats(2, 2), dtype=tf.float32)),
    ]


def core_cells():
    x = floats(2, 3)
    cell = rnn.MultiRNNCell(
        [
            rnn.DropoutWrapper(rnn.LSTMCell(3, use_peepholes=True, num_proj=3), input_keep_prob=1.0),
            rnn.ResidualWrapper(rnn.DeviceWrapper(rnn.BasicLSTMCell(3), "/cpu:0")),
            rnn.GRUCell(3),
            rnn.BasicRNNCell(2),
        ]
    )
    zero = cell.zero_state(2, tf.float32)
    kinds = [
        isinstance(zero[0], rnn.LSTMStateTuple),
        issubclass(rnn.GRUCell, rnn.LayerRNNCell),
        issubclass(rnn.LayerRNNCell, rnn.RNNCell),
    ]
    return [cell(x, zero), kinds]


def static_functions():
    x = floats(2, 3, 2)
    steps = tf.unstack(x, axis=1)

    class Saver(object):
        def state(self, name):
            return tf.zeros([2, 2])

        def save_state(self, name, value):
            return tf.no_op()

    return [
        rnn.static_rnn(rnn.BasicRNNCell(2), steps, dtype=tf.float32),
        rnn.static_bidirectional_rnn(rnn.GRUCell(2), rnn.GRUCell(2), steps, dtype=tf.float32),
        rnn.static_state_saving_rnn(rnn.BasicRNNCell(2), steps, Saver(), "state", scope="saving"),
        rnn.transpose_batch_time(x),
        rnn.best_effort_input_batch_size([tf.placeholder(tf.float32, [None, None, 2]), tf.transpose(x, [1, 0, 2])]),
    ]


def _raised(call):
    try:
        call()
    except (ValueError, TypeError) as error:
        return type(error).__name__
    return "nothing raised"
