"""The rewrite of inputs_old.py; it predicts from a dataset with labels, from one without, and from a list of arrays."""

import numpy as np
import tensorflow as tf
import tf_keras as keras

RANDOM = np.random.RandomState(0)
X, KINDS = RANDOM.randn(48, 3).astype(np.float32), RANDOM.randint(0, 4, [48]).astype(np.int32)
Y = X.sum(1, keepdims=True) * (KINDS[:, None] + 0.5).astype(np.float32)

x, kinds = keras.Input([3]), keras.Input([], dtype="int32")
factor = keras.layers.Lambda(lambda kinds: tf.cast(kinds, tf.float32)[:, tf.newaxis] + 1.0)(kinds)
model = keras.Model((x, kinds), keras.layers.Dense(1)(x) * factor)
model.compile(keras.optimizers.SGD(0.01), "mse", metrics=[keras.metrics.MeanAbsoluteError(name="error")])
data = tf.data.Dataset.from_tensor_slices(((X, KINDS), Y)).batch(16)
model.fit(data, verbose=0)
model.evaluate(data, verbose=0)
model.predict(data, verbose=0)
model.predict(data.map(lambda features, labels: (features,)), verbose=0)
model.predict([X, KINDS], batch_size=16, verbose=0)
