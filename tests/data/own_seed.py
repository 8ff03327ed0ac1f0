"""A small classifier that sets its own seed."""

import numpy as np
import tensorflow as tf


def input_fn():
    x = np.random.RandomState(0).randn(64, 3).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, (x.sum(1) > 0).astype(np.int32))).batch(16)


columns = [tf.feature_column.numeric_column("x", shape=[3])]
estimator = tf.estimator.DNNClassifier([4], columns, config=tf.estimator.RunConfig(tf_random_seed=7))
estimator.train(input_fn)
estimator.evaluate(input_fn)
