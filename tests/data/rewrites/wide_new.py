"""The rewrite of wide_old.py: a train_step of its own with two optimizers."""

import numpy as np
import tensorflow as tf
import tf_keras as keras


def batches():
    random = np.random.RandomState(0)
    size = random.randn(200).astype(np.float32)
    color = random.randint(0, 7, 200)
    return tf.data.Dataset.from_tensor_slices(({"size": size, "color": color}, (size + color > 3).astype(np.int32))).batch(20)


class Wide(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = keras.layers.Embedding(7, 3, name="color_embedding")
        self.d0 = keras.layers.Dense(8, "relu", name="hiddenlayer_0")
        self.d1 = keras.layers.Dense(5, "relu", name="hiddenlayer_1")
        self.out = keras.layers.Dense(1, name="logits")
        self.wide = keras.layers.Embedding(7, 1, embeddings_initializer="zeros", name="color_wide")
        self.bias = self.add_weight("bias_weights", [1], initializer="zeros")
        self.linear_optimizer = keras.optimizers.legacy.Ftrl(0.005, initial_accumulator_value=0.1)
        self.dnn_optimizer = keras.optimizers.legacy.Adagrad(0.001, initial_accumulator_value=0.1, epsilon=1e-30)
        self.mean = keras.metrics.Mean()
        self.acc = keras.metrics.BinaryAccuracy()

    def call(self, features):
        color = tf.reshape(features["color"], [-1])
        net = tf.concat([self.embed(color), tf.reshape(features["size"], [-1, 1])], 1)  # columns in the order of their names
        return self.out(self.d1(self.d0(net))) + self.wide(color) + self.bias

    def total(self, features, labels):
        logits = self(features)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.reshape(tf.cast(labels, tf.float32), [-1, 1]), logits=logits)
        return logits, tf.reduce_sum(losses)

    def train_step(self, data):
        features, labels = data
        with tf.GradientTape() as tape:
            _, loss = self.total(features, labels)
        linear = [self.wide.embeddings, self.bias]
        dnn = [v for v in self.trainable_variables if not any(v is other for other in linear)]
        gradients = tape.gradient(loss, linear + dnn)
        self.linear_optimizer.apply_gradients(zip(gradients[:2], linear))
        self.dnn_optimizer.apply_gradients(zip(gradients[2:], dnn))
        return {"loss": loss}

    def test_step(self, data):
        features, labels = data
        logits, loss = self.total(features, labels)
        self.mean.update_state(loss)
        self.acc.update_state(tf.reshape(labels, [-1, 1]), tf.sigmoid(logits))
        return {"loss": self.mean.result(), "accuracy": self.acc.result()}


model = Wide()
model.compile()
model.fit(batches(), epochs=2, verbose=0)
model.evaluate(batches(), verbose=0)
