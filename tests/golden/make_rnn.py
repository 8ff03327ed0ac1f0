"""Makes tests/golden/rnn with TensorFlow 1.15.5: python make_rnn.py FOLDER.

Every recurrent cell that Keras has in another layout, trained with Adam. Each has a scope and a number of units of its own.
"""

import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.contrib import cudnn_rnn, rnn

v1 = tf.compat.v1
FOLDER = sys.argv[1]
STEPS, MORE, RATE = 3, 1, 0.05
X = np.random.RandomState(0).normal(size=(2, 5, 3)).astype(np.float32)
ONE_THREAD = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)  # the same bytes each time

CELLS = {
    "basic_lstm": lambda: rnn.BasicLSTMCell(2),
    "lstm": lambda: rnn.LSTMCell(3, forget_bias=1.0),
    "block": lambda: rnn.LSTMBlockCell(4),
    "gru": lambda: rnn.GRUCell(5),
    "gru_block": lambda: rnn.GRUBlockCellV2(6),
    "cudnn_lstm": lambda: cudnn_rnn.CudnnCompatibleLSTMCell(7),
    "cudnn_gru": lambda: cudnn_rnn.CudnnCompatibleGRUCell(8),
    "basic_rnn": lambda: rnn.BasicRNNCell(9),
}
OTHERS = {  # without a counterpart
    "peepholes": lambda: rnn.LSTMCell(2, use_peepholes=True),
    "projection": lambda: rnn.LSTMCell(2, num_proj=4),
    "layer_norm": lambda: rnn.LayerNormBasicLSTMCell(2),
}


def outputs(cells):
    """The last output of each cell over the batch, by scope."""
    found = {}
    for scope in sorted(cells):
        with v1.variable_scope(scope):
            found[scope] = v1.nn.dynamic_rnn(cells[scope](), X, dtype=tf.float32)[0][:, -1]
    return found


def fused():
    """A fused cell, which takes time first."""
    with v1.variable_scope("fused"):
        return rnn.LSTMBlockFusedCell(10)(np.transpose(X, [1, 0, 2]), dtype=tf.float32)[0][-1]


def stacked():
    """Two layers, whose cells are numbered."""
    with v1.variable_scope("stacked"):
        cell = rnn.MultiRNNCell([rnn.BasicLSTMCell(11, forget_bias=0.5), rnn.BasicLSTMCell(12, forget_bias=0.5)])
        return v1.nn.dynamic_rnn(cell, X, dtype=tf.float32)[0][:, -1]


def record(name, make):
    """Trains, saves checkpoint and outputs, trains on and records the outputs again."""
    with tf.Graph().as_default():
        v1.set_random_seed(5)
        found = make()
        step = v1.train.get_or_create_global_step()
        variables = v1.trainable_variables()
        fill = np.random.RandomState(1)  # no bias is to stay zero
        start = [v.assign(fill.normal(scale=0.5, size=v.shape.as_list()).astype(np.float32)) for v in variables]
        loss = tf.add_n([tf.reduce_mean((out - 0.3) ** 2) for _, out in sorted(found.items())])
        train = v1.train.AdamOptimizer(RATE).minimize(loss, step)
        with v1.Session(config=ONE_THREAD) as session:
            session.run(v1.global_variables_initializer())
            session.run(start)
            for _ in range(STEPS):
                session.run(train)
            prefix = FOLDER + "/" + name
            v1.train.Saver().save(session, prefix, global_step=step, write_meta_graph=False, write_state=False)
            before = session.run(found)
            for _ in range(MORE):
                session.run(train)
            after = session.run(found)
    arrays = {scope + "/before": value for scope, value in before.items()}
    arrays.update({scope + "/after": value for scope, value in after.items()})
    np.savez(FOLDER + "/" + name + ".npz", x=X, **arrays)


assert v1.VERSION == "1.15.5", v1.VERSION
os.makedirs(FOLDER, exist_ok=True)
record("cells", lambda: dict(outputs(CELLS), fused=fused(), stacked=stacked()))
record("others", lambda: outputs(OTHERS))
