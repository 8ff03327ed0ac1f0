"""The rewrite of turns_old.py: dropout in a cell of its own, by the layer's argument and at once, or in a loop that is unrolled."""

import argparse

import numpy as np
import tensorflow as tf
import tf_keras as keras

parser = argparse.ArgumentParser()
parser.add_argument("form", choices=["cell", "layer", "unrolled"])
parser.add_argument("--rate", type=float, default=0.4)
ARGS = parser.parse_args()


class DroppingCell(keras.layers.Layer):
    """An LSTM cell with other masks of its inputs and outputs in each turn."""

    def __init__(self):
        super().__init__()
        self.cell = keras.layers.LSTMCell(7)
        self.state_size, self.output_size = self.cell.state_size, 7
        self.of_inputs, self.of_outputs = keras.layers.Dropout(0.3), keras.layers.Dropout(ARGS.rate)

    def call(self, inputs, states, training=None):
        output, states = self.cell(self.of_inputs(inputs, training=training), states)
        return self.of_outputs(output, training=training), states


def batches():
    random = np.random.RandomState(0)
    words = random.randn(96, 5, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"words": words}, words[:, :, 0].sum(1, keepdims=True))).batch(16)


words = keras.Input([5, 3], name="words")
if ARGS.form == "layer":
    outputs = keras.layers.LSTM(7, dropout=0.3, return_sequences=True)(words)
    outputs = keras.layers.Dropout(ARGS.rate)(outputs)
else:
    outputs = keras.layers.RNN(DroppingCell(), return_sequences=True, unroll=ARGS.form == "unrolled")(words)
model = keras.Model({"words": words}, keras.layers.Dense(1)(tf.reduce_mean(outputs, 1)))
model.compile(keras.optimizers.SGD(0.1), "mse")
model.fit(batches(), verbose=0)
