"""The rewrite of conv_old.py: a loop of its own with a gradient tape."""

import argparse

import numpy as np
import tensorflow as tf
import tf_keras as keras

parser = argparse.ArgumentParser()
parser.add_argument("--decay", type=float, default=0.9)
ARGS = parser.parse_args()


def batches():
    random = np.random.RandomState(0)
    images = random.rand(96, 8, 8, 1).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((images, (images.mean((1, 2, 3)) > 0.5).astype(np.int64))).batch(12)


model = keras.Sequential(
    [
        keras.layers.Conv2D(4, 3, name="conv"),
        keras.layers.BatchNormalization(momentum=ARGS.decay, name="norm"),
        keras.layers.Activation("tanh"),
        keras.layers.Flatten(),
        keras.layers.Dense(2, name="logits"),
    ]
)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(0.05, momentum=0.9)


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(2):
    for images, labels in batches():
        step(images, labels)
model.compile(loss=loss_of, metrics=["accuracy"])
model.evaluate(batches(), verbose=0)
