"""A network that is called twice, with dropout and without, and gradients that flow through the first call."""

import numpy as np
import tensorflow as tf

classes = 3
rate = 0.25


def network(inputs, n_classes, dropout, reuse, is_training, scope="Network"):
    with tf.variable_scope(scope, reuse=reuse):
        x = inputs["images"]
        x = tf.reshape(x, shape=[-1, 6, 6, 1])
        x = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu)
        x = tf.layers.flatten(x)
        x = tf.layers.dense(x, 16)
        x = tf.layers.dropout(x, rate=dropout, training=is_training)
        return tf.layers.dense(x, n_classes)


def model_fn(features, labels, mode):
    logits_train = network(features, classes, rate, reuse=False, is_training=True)
    logits_test = network(features, classes, rate, reuse=True, is_training=False)
    found = tf.argmax(logits_test, axis=1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=found)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits_train, labels=tf.cast(labels, dtype=tf.int32))
    loss = tf.reduce_mean(losses)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=tf.train.get_global_step())
    accuracy = tf.metrics.accuracy(labels=labels, predictions=found)
    return tf.estimator.EstimatorSpec(mode, found, loss, train_op, {"accuracy": accuracy})


draws = np.random.RandomState(0)
images, labels = draws.rand(50, 36).astype(np.float32), draws.randint(0, 3, 50)
input_fn = tf.estimator.inputs.numpy_input_fn({"images": images}, labels, batch_size=10, num_epochs=2, shuffle=False)
model = tf.estimator.Estimator(model_fn)
model.train(input_fn)
print("accuracy above 0:", model.evaluate(input_fn)["accuracy"] > 0.0)
