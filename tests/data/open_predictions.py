"""Takes the first prediction of an endless input and leaves the generator open, as scripts do that look at one example."""

import numpy as np, tensorflow as tf

def rows():
    random = np.random.RandomState(2)
    while True:
        yield random.rand(4).astype(np.float32)

def input_fn():
    return tf.data.Dataset.from_generator(rows, tf.float32, [4]).map(lambda x: (x, tf.reduce_sum(x))).batch(8)

def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features, 1)[:, 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=outputs)
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
first = estimator.predict(input_fn)
print(next(first))
estimator.train(input_fn, steps=5)
print(next(estimator.predict(input_fn)))
