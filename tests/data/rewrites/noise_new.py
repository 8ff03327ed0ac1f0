"""The autoencoder of noise_old.py in Keras; the argument says how it draws."""

import sys

import numpy as np
import tensorflow as tf
import tf_keras

FORM = sys.argv[1]


class Autoencoder(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.scale = self.add_weight("scale", [4])
        self.hidden = tf_keras.layers.Dense(8, "relu", name="dense")
        self.mean = tf_keras.layers.Dense(2, name="dense_1")
        self.log_var = tf_keras.layers.Dense(2, name="dense_2")
        self.decoder = [tf_keras.layers.Dense(8, "relu", name="dense_3"), tf_keras.layers.Dense(4, name="dense_4")]
        self.noise = tf_keras.layers.GaussianNoise(1.0)
        self.average = tf_keras.metrics.Mean(name="loss")

    def drawn(self, mean):
        if FORM == "layer":
            return self.noise(tf.zeros_like(mean), training=True)
        if FORM == "one for all rows":
            return tf.random.normal([1, 2])
        if FORM == "other distribution":
            return tf.random.uniform(tf.shape(mean))
        if FORM == "two":
            return (tf.random.normal(tf.shape(mean)) + tf.random.normal(tf.shape(mean))) / 2**0.5
        return tf.random.normal([tf.shape(mean)[0], 2])

    def call(self, x, training=False):
        noisy = x * self.scale
        if training:
            noisy += tf.random.uniform(tf.shape(x), -0.1, 0.1)
        hidden = self.hidden(noisy)
        mean, log_var = self.mean(hidden), self.log_var(hidden)
        code = mean + tf.exp(0.5 * log_var) * self.drawn(mean) if training else mean
        return self.decoder[1](self.decoder[0](code)), mean, log_var

    def loss_of(self, x, training):
        output, mean, log_var = self(x, training=training)
        kl = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), 1)
        return tf.reduce_mean(tf.reduce_sum(tf.square(output - x), 1) + kl)

    def train_step(self, features):
        with tf.GradientTape() as tape:
            loss = self.loss_of(features["x"], training=True)
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        return {"loss": loss}

    def test_step(self, features):
        self.average.update_state(self.loss_of(features["x"], training=False))
        return {"loss": self.average.result()}


x = np.random.RandomState(0).rand(60, 4).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices({"x": x}).repeat().batch(10)
model = Autoencoder()
model.compile(tf_keras.optimizers.legacy.Adam(0.01, epsilon=1e-8), run_eagerly=FORM == "eager")
model.fit(data, steps_per_epoch=12)
model.evaluate(data, steps=3)
