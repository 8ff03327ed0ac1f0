"""The rewrite of towers_old.py: a model with two optimizers and a train_step."""

import numpy as np
import tensorflow as tf
import tf_keras as keras


def batches():
    random = np.random.RandomState(0)
    rows = {"user": random.randint(0, 40, [168]), "dense": random.randn(168, 5).astype(np.float32)}
    return tf.data.Dataset.from_tensor_slices((rows, (rows["user"] % 3 + rows["dense"][:, 0]).astype(np.float32))).batch(14)


class Towers(keras.Model):
    def __init__(self):
        super().__init__()
        self.table = keras.layers.Embedding(40, 3, embeddings_initializer="zeros")
        self.deep = keras.Sequential(
            [
                keras.layers.Dense(9, "tanh", name="hidden"),
                keras.layers.BatchNormalization(momentum=0.9, name="norm"),
                keras.layers.Dropout(0.25),
                keras.layers.Dense(1, name="out"),
            ]
        )
        self.first = keras.optimizers.Ftrl(0.1)

    def call(self, features, training=False):
        return tf.reduce_sum(self.table(features["user"]), 1) + self.deep(features["dense"], training=training)[:, 0]

    def train_step(self, data):
        features, labels = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(labels - self(features, training=True)))
        parts = self.table.trainable_variables, self.deep.trainable_variables
        wide, deep = tape.gradient(loss, parts)
        self.first.apply_gradients(zip(wide, parts[0]))
        self.optimizer.apply_gradients(zip(deep, parts[1]))
        return {"loss": loss}


model = Towers()
model.compile(keras.optimizers.Adam(0.05, epsilon=1e-8), "mse", metrics=["mae"])
model.fit(batches(), epochs=2, verbose=0)
model.evaluate(batches(), verbose=0)
