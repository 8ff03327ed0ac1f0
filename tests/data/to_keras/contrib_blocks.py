"""Tables and several layers at once by functions of contrib."""

import numpy as np
import tensorflow as tf
import tensorflow.contrib.layers as layers


def model_fn(features, labels, mode, params):
    # the words
    embedded = tf.contrib.layers.embed_sequence(
        features["w"], vocab_size=30, embed_dim=5, initializer=tf.random_uniform_initializer(-0.2, 0.2)
    )
    other = layers.embed_sequence(features["w"], 30, 4, trainable=False)
    net = tf.concat([embedded, other], axis=2)
    image = tf.expand_dims(net, -1)
    image = tf.contrib.layers.repeat(image, 2, tf.contrib.layers.conv2d, 3, [2, 2], scope="image")
    image = layers.repeat(image, 2, layers.conv2d, 3, 2)
    net = tf.reshape(image, [-1, 6 * 9 * 3])
    net = layers.stack(
        net,
        layers.fully_connected,  # dense
        params["units"],
        activation_fn=tf.nn.tanh,
    )  # two
    net = tf.contrib.layers.stack(inputs=net, layer=tf.contrib.layers.fully_connected, stack_args=[5, 4], scope="last")
    logits = tf.layers.dense(net, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    random = np.random.RandomState(0)
    rows = {"w": random.randint(0, 30, [32, 6])}, random.randint(0, 2, 32)
    return tf.data.Dataset.from_tensor_slices(rows).repeat().batch(8)


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn, "model", params={"units": [6, 4]})
    estimator.train(input_fn, steps=12)
    print(sorted(estimator.evaluate(input_fn, steps=2)))
