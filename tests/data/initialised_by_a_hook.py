"""A TensorFlow 1 job whose hook gives the input's iterator its data, by a feed_dict after the session was created."""

import numpy as np
import tensorflow as tf

X = np.random.RandomState(0).rand(64, 3).astype(np.float32)
Y = X.sum(1, keepdims=True)


class InitialiseIterator(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        self.initialise(session)


def input_and_hook(epochs):
    hook = InitialiseIterator()

    def input_fn():
        x, y = tf.placeholder(X.dtype, X.shape), tf.placeholder(Y.dtype, Y.shape)
        iterator = tf.data.Dataset.from_tensor_slices((x, y)).repeat(epochs).batch(16).make_initializable_iterator()
        hook.initialise = lambda session: session.run(iterator.initializer, feed_dict={x: X, y: Y})
        return iterator.get_next()

    return {"input_fn": input_fn, "hooks": [hook]}


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(**input_and_hook(2))
print(estimator.evaluate(**input_and_hook(1))["global_step"])
