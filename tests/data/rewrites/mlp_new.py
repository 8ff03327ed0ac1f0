"""The rewrite of mlp_old.py with compile, fit, evaluate and predict."""

import argparse

import numpy as np
import tensorflow as tf
import tf_keras as keras

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.01)
parser.add_argument("--dropout", type=float, default=0.3)
parser.add_argument("--epsilon", type=float, default=1e-8)
ARGS = parser.parse_args()


def data(rows, seed):
    random = np.random.RandomState(seed)
    x = random.randn(rows, 6).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int32)


train = tf.data.Dataset.from_tensor_slices(data(192, 0)).shuffle(192).batch(16)
held_out = tf.data.Dataset.from_tensor_slices(data(40, 1)).batch(16)

inputs = keras.Input([6])
net = keras.layers.Dense(12, "tanh")(inputs)
net = keras.layers.Dropout(ARGS.dropout)(net)
model = keras.Model(inputs, keras.layers.Dense(2)(net))
model.compile(
    keras.optimizers.Adam(ARGS.rate, epsilon=ARGS.epsilon),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
for _ in range(2):
    model.fit(train, verbose=0)
    model.evaluate(held_out, verbose=0)
model.predict(held_out, verbose=0)
