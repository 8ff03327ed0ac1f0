"""The rewrite of branches_old.py: a functional model, of which Keras executes the longest branch first."""

import numpy as np
import tensorflow as tf
import tf_keras as keras


def batches():
    x = np.random.RandomState(0).randn(120, 6).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, np.tanh(x[:, :1]))).batch(12)


inputs = keras.Input([6])
second = keras.layers.Dense(6, "tanh", name="second")(keras.layers.Dropout(0.25)(inputs))
first = keras.layers.Dense(6, "relu", name="first")(keras.layers.Dropout(0.25)(inputs))
both = keras.layers.Dropout(0.25)(keras.layers.Add()([second, keras.layers.Dropout(0.25)(first)]))
model = keras.Model(inputs, keras.layers.Dense(1, name="third")(both))
model.compile(keras.optimizers.Adam(0.01, epsilon=1e-8), "mse")
model.fit(batches(), verbose=0)
