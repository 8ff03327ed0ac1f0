"""A wrong rewrite of mlp_old.py: a step of its own doubles its loss if it makes the variables, and no call has made them before."""

import numpy as np
import tensorflow as tf
import tf_keras as keras


def data(rows, seed):
    random = np.random.RandomState(seed)
    x = random.randn(rows, 6).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int32)


class Model(keras.Model):
    """A network whose variables the first call or step makes."""

    def __init__(self):
        super().__init__()
        self.hidden, self.logits = keras.layers.Dense(12, "tanh", name="hidden"), keras.layers.Dense(2, name="logits")
        self.dropout, self.factor = keras.layers.Dropout(0.3), 1.0
        self.mean = keras.metrics.Mean(name="loss")

    def call(self, inputs, training=False):
        return self.logits(self.dropout(self.hidden(inputs), training=training))

    def train_step(self, data):
        if not self.trainable_variables:
            self.factor = 2.0
        with tf.GradientTape() as tape:
            logits = self(data[0], training=True)
            loss = self.factor * self.compiled_loss(data[1], logits)
        self.optimizer.minimize(loss, self.trainable_variables, tape)
        self.mean.update_state(loss)
        return {"loss": self.mean.result()}


model = Model()
model.compile(
    keras.optimizers.Adam(0.01, epsilon=1e-8),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
for _ in range(2):
    model.fit(tf.data.Dataset.from_tensor_slices(data(192, 0)).batch(16), verbose=0)
    model.evaluate(tf.data.Dataset.from_tensor_slices(data(40, 1)).batch(16), verbose=0)
model.predict(tf.data.Dataset.from_tensor_slices(data(40, 1)).batch(16), verbose=0)
