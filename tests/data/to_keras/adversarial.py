"""Two networks against each other: each has an optimizer, both count the step, and the loss that is reported is that of the second."""

import numpy as np
import tensorflow as tf


def generator(noise):
    with tf.variable_scope("generator"):
        hidden = tf.layers.dense(noise, 6, tf.nn.relu, name="hidden")
        return tf.layers.dense(hidden, 4, tf.nn.tanh, name="images")


def discriminator(images, reuse=False):
    with tf.variable_scope("discriminator", reuse=reuse):
        hidden = tf.layers.dense(images, 5, tf.nn.leaky_relu, name="hidden")
        return tf.layers.dense(hidden, 1, name="real")


def model_fn(features, labels, mode):
    made = generator(features["noise"])
    real, fake = discriminator(features["images"]), discriminator(made, reuse=True)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"made": made})
    ones, zeros = tf.ones_like(real), tf.zeros_like(real)
    loss_of_generator = tf.losses.sigmoid_cross_entropy(ones, fake)
    loss = tf.losses.sigmoid_cross_entropy(ones, real, label_smoothing=0.1) + tf.losses.sigmoid_cross_entropy(zeros, fake)
    variables = tf.trainable_variables()
    of_generator = [one for one in variables if one.name.startswith("generator")]
    of_discriminator = [one for one in variables if one.name.startswith("discriminator")]
    first = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(loss_of_generator, tf.train.get_global_step(), of_generator)
    second = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(loss, tf.train.get_global_step(), of_discriminator)
    return tf.estimator.EstimatorSpec(mode, {"made": made}, loss, tf.group(first, second))


draws = np.random.RandomState(0)
images, noise = draws.rand(32, 4).astype(np.float32), draws.rand(32, 3).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"images": images, "noise": noise}, images)).batch(8).repeat()


model = tf.estimator.Estimator(model_fn)
model.train(input_fn, steps=8)
print("step:", model.evaluate(input_fn, steps=2)["global_step"])
