"""Every kind of input that a TensorFlow 1 script hands to its Estimator; prints the mean that each gives."""

import json
import sys
import tempfile

import numpy as np
import tensorflow as tf

VALUES = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], np.float32)  # mean 3.5


def model_fn(features, labels, mode):
    x = features["x"] if isinstance(features, dict) else features
    x = tf.reshape(tf.cast(x, tf.float32), [-1])
    loss = tf.square(tf.get_variable("w", [], initializer=tf.ones_initializer())) + 0.0 * tf.reduce_sum(x)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"mean": tf.metrics.mean(x)})


def mean_of(input_fn):
    estimator = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
    estimator.train(input_fn, steps=2)
    return float(estimator.evaluate(input_fn)["mean"])


OUTSIDE = tf.data.Dataset.from_tensor_slices({"x": VALUES}).map(lambda f: {"x": tf.py_func(np.negative, [-f["x"]], tf.float32)}).batch(2)


def outside():
    return OUTSIDE


BATCHES = tf.data.Dataset.from_tensor_slices({"x": VALUES}).batch(2)


def iterator():
    return BATCHES.make_one_shot_iterator().get_next()


def iterator_by_function():
    return tf.data.make_one_shot_iterator(BATCHES).get_next()


def one_tuple():
    return (tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(VALUES).batch(3)).get_next(),)


def dataset_of_one_tuples():
    return tf.data.Dataset.from_tensor_slices(({"x": VALUES},)).batch(3)


def one_shot():
    return tf.data.Dataset.from_tensor_slices(VALUES).batch(2).make_one_shot_iterator().get_next()


def initializable():
    iterator = tf.data.Dataset.from_tensor_slices({"x": VALUES}).batch(2).make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def pandas_input():
    import pandas as pd

    return tf.estimator.inputs.pandas_input_fn(pd.DataFrame({"x": VALUES}), batch_size=3, num_epochs=1, shuffle=False)


def queue():
    texts = tf.train.string_input_producer([str(value) for value in VALUES], num_epochs=1, shuffle=False)
    return {"x": tf.string_to_number(texts.dequeue_many(3))}


print(json.dumps({
    "outside": mean_of(outside),
    "iterator": mean_of(iterator),
    "iterator_by_function": mean_of(iterator_by_function),
    "one_tuple": mean_of(one_tuple),
    "dataset_of_one_tuples": mean_of(dataset_of_one_tuples),
    "one_shot": mean_of(one_shot),
    "initializable": mean_of(initializable),
    "numpy": mean_of(tf.estimator.inputs.numpy_input_fn({"x": VALUES}, batch_size=2, num_epochs=1, shuffle=False)),
    "pandas": mean_of(pandas_input()),
    "queue": mean_of(queue),
}))
