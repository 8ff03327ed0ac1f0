"""Dropout at once, in layers of Keras and in eager loops draws the masks of the turns of another side's loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras

from estimator_bridge.parity.rewrite import dropout
from estimator_bridge.parity.rewrite.dropout import Site

TURNS, ROWS, SIZE = 4, 3, 100
TURN = Site((SIZE,), 0.5, loops=1)
dropout.equalise(lambda: tf.constant(3, tf.int64), feeds=False, trains=lambda: True, others=[TURN], rows=ROWS)


class DroppingCell(keras.layers.Layer):
    """A cell that returns its input, of which it drops some; its state stays as it is."""

    state_size = output_size = SIZE

    def __init__(self) -> None:
        super().__init__()
        self.dropout = keras.layers.Dropout(0.5)

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        """Returns the output and the state."""
        return self.dropout(inputs, training=training), states


def of_loop(values: Any) -> Any:
    """Returns the values, whose rows and sizes follow their time, of each turn of a loop."""
    found = tf.TensorArray(tf.float32, TURNS)

    def turn(number: Any, found: Any) -> Any:
        return number + 1, found.write(number, tf.nn.dropout(values[number], 0.5))

    return tf.while_loop(lambda number, _: number < TURNS, turn, (tf.constant(0), found))[1].stack()


def kept(compute: Any, given: Any, *sites: Site) -> Any:
    """Returns what a function of a tensor computes, once it has been checked which sites its result needs."""

    @tf.function(input_signature=[tf.TensorSpec(given, tf.float32)])
    def step(values: Any) -> Any:
        computed = compute(values)
        needed = dropout.needed_sites(tf.compat.v1.get_default_graph(), tf.reduce_sum(computed))
        plain = [Site(site.shape, site.rate, site.what, site.loops, site.axis) for site in needed]
        assert plain == [*sites], (plain, sites)
        numbers = [int(tf.get_static_value(site.number)) for site in needed]
        assert numbers == [*range(len(needed))], numbers
        return computed

    return step(tf.ones([size or ROWS for size in given])).numpy()


turns = kept(of_loop, [TURNS, ROWS, SIZE], TURN)
assert len({row.tobytes() for row in turns}) == TURNS
by_rows = turns.transpose(1, 0, 2)
along_rows, along_time = (Site((SIZE,), 0.5, loops=1, axis=axis) for axis in (1, 0))
np.testing.assert_array_equal(kept(lambda values: tf.nn.dropout(values, 0.5), [None, TURNS, SIZE], along_rows), by_rows)
np.testing.assert_array_equal(kept(lambda values: tf.nn.dropout(values, 0.5), [TURNS, None, SIZE], along_time), turns)

layer = keras.layers.RNN(DroppingCell(), return_sequences=True)
np.testing.assert_array_equal(kept(lambda values: layer(values, training=True), [None, TURNS, SIZE], TURN), by_rows)
np.testing.assert_array_equal(of_loop(tf.ones([TURNS, ROWS, SIZE])), turns)
dropout.begin_step()
np.testing.assert_array_equal(tf.nn.dropout(tf.ones([ROWS, TURNS, SIZE]), 0.5), by_rows)

both = keras.Sequential([keras.layers.LSTM(SIZE, dropout=0.5, return_sequences=True), keras.layers.GRU(7, dropout=0.5)])
kept(lambda values: both(values, training=True), [None, TURNS, SIZE], along_rows, along_rows)
cells = keras.layers.RNN([keras.layers.LSTMCell(SIZE, dropout=0.5), DroppingCell()])
kept(lambda values: cells(values, training=True), [None, TURNS, SIZE], TURN, TURN)
