"""The rewrite of deepfm_old.py: a model with its own train_step."""

import argparse

import numpy as np
import tensorflow as tf
import tf_keras as keras

parser = argparse.ArgumentParser()
parser.add_argument("--l2", type=float, default=0.01)
ARGS = parser.parse_args()


def batches():
    random = np.random.RandomState(0)
    ids = random.randint(0, 30, [200, 4])
    values = random.rand(200, 4).astype(np.float32)
    labels = (values[:, 0] > 0.5).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"ids": ids, "values": values}, labels)).batch(20)


class FactorizationMachine(keras.Model):
    def __init__(self):
        super().__init__()
        self.bias = self.add_weight("fm_bias", [1], initializer="zeros")
        self.first = self.add_weight("fm_w", [30], initializer="glorot_normal")
        self.factors = self.add_weight("fm_v", [30, 5], initializer="glorot_normal")
        self.mean = keras.metrics.Mean("loss")
        self.auc = keras.metrics.AUC(name="auc")

    def call(self, features):
        first = tf.reduce_sum(tf.nn.embedding_lookup(self.first, features["ids"]) * features["values"], 1)
        vectors = tf.nn.embedding_lookup(self.factors, features["ids"]) * features["values"][..., None]
        second = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(vectors, 1)) - tf.reduce_sum(tf.square(vectors), 1), 1)
        return self.bias + first + second

    def total(self, features, labels):
        logits = self(features)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))
        return logits, loss + ARGS.l2 * (tf.nn.l2_loss(self.first) + tf.nn.l2_loss(self.factors))

    def train_step(self, data):
        features, labels = data
        with tf.GradientTape() as tape:
            _, loss = self.total(features, labels)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return {"loss": loss}

    def test_step(self, data):
        features, labels = data
        logits, loss = self.total(features, labels)
        self.mean.update_state(loss)
        self.auc.update_state(labels, tf.sigmoid(logits))
        return {"loss": self.mean.result(), "auc": self.auc.result()}


model = FactorizationMachine()
model.compile(keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.1, epsilon=1e-30))
model.fit(batches(), epochs=2, verbose=0)
model.evaluate(batches(), verbose=0)
