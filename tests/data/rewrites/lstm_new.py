"""The rewrite of lstm_old.py with compile and fit."""

import argparse

import numpy as np
import tensorflow as tf
import tf_keras as keras

parser = argparse.ArgumentParser()
parser.add_argument("--loss", default="mse")
ARGS = parser.parse_args()


def batches():
    random = np.random.RandomState(0)
    words = random.randn(96, 5, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"words": words}, words[:, :, 0].sum(1, keepdims=True))).batch(16)


words = keras.Input([5, 3], name="words")
model = keras.Model({"words": words}, keras.layers.Dense(1)(keras.layers.LSTM(7)(words)))
model.compile(keras.optimizers.SGD(0.1), ARGS.loss)
model.fit(batches(), epochs=2, verbose=0)
model.evaluate(batches(), verbose=0)
