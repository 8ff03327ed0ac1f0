"""The same trainings as they are written by hand today: prints steps per second for each line WAY MODEL on stdin.

The optimizer computes the same as TensorFlow 1's Adagrad: no epsilon, and rows that a sparse gradient lacks stay as they are.
"""

import os
import sys
import time

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf
import tf_keras

from batches import BATCH, STEPS, VOCABULARY, WARM_UP, arrays

layers = tf_keras.layers
PER_CALL = 100


class Always(layers.Dropout):
    """Dropout that is always on, as in the TensorFlow 1 job."""

    def call(self, inputs):
        return super().call(inputs, training=True)


MODELS = {
    "dense": lambda: ("x", [layers.Dense(128, "relu"), layers.Dense(64, "relu")]),
    "convolutional": lambda: (
        "x",
        [
            layers.Reshape([8, 8, 1]),
            layers.Conv2D(16, 3, activation="relu"),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(2, 2),
            layers.Flatten(),
            layers.Dense(64, "relu"),
            Always(0.5),
        ],
    ),
    "embedding": lambda: (
        "ids",
        [layers.Embedding(VOCABULARY, 32), layers.GlobalAveragePooling1D(), layers.Dense(64, "relu")],
    ),
    "rnn": lambda: ("x", [layers.Reshape([16, 4]), layers.LSTM(32)]),
}


def parts(name):
    """Returns model, optimizer and data."""
    key, hidden = MODELS[name]()
    features, labels = arrays()
    model = tf_keras.Sequential([layers.Input(features[key].shape[1:], dtype=features[key].dtype), *hidden, layers.Dense(10)])
    optimizer = tf_keras.optimizers.legacy.Adagrad(0.05, epsilon=0.0)
    data = tf.data.Dataset.from_tensor_slices((features[key], labels)).repeat().batch(BATCH).prefetch(4)
    return model, optimizer, data


def fit(name, steps_per_execution=1):
    model, optimizer, data = parts(name)
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, steps_per_execution=steps_per_execution)
    return lambda steps: model.fit(data, steps_per_epoch=steps, verbose=0)


def loop(name):
    model, optimizer, data = parts(name)

    @tf.function
    def many(batches):
        loss = 0.0
        for _ in tf.range(PER_CALL):
            features, labels = next(batches)
            with tf.GradientTape() as tape:
                logits = model(features, training=True)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
                loss = tf.reduce_mean(losses)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    batches = iter(data)
    return lambda steps: [float(many(batches)) for _ in range(steps // PER_CALL)]


WAYS = {"fit": fit, "fit-100": lambda name: fit(name, PER_CALL), "loop": loop}


def main():
    for line in sys.stdin:
        way, model = line.split()
        train = WAYS[way](model)
        train(WARM_UP // PER_CALL * PER_CALL)
        started = time.perf_counter()
        train(STEPS[model])
        print("steps per second: %.2f" % (STEPS[model] / (time.perf_counter() - started)), flush=True)


if __name__ == "__main__":
    main()
