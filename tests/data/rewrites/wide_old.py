"""A canned Estimator with default optimizers: Ftrl for the linear part, Adagrad for the layers."""

import numpy as np
import tensorflow as tf


def batches():
    random = np.random.RandomState(0)
    size = random.randn(200).astype(np.float32)
    color = random.randint(0, 7, 200)
    return tf.data.Dataset.from_tensor_slices(({"size": size, "color": color}, (size + color > 3).astype(np.int32))).batch(20)


color = tf.feature_column.categorical_column_with_identity("color", 7)
estimator = tf.estimator.DNNLinearCombinedClassifier(
    linear_feature_columns=[color],
    dnn_feature_columns=[tf.feature_column.numeric_column("size"), tf.feature_column.embedding_column(color, 3)],
    dnn_hidden_units=[8, 5],
)
estimator.train(lambda: batches().repeat(2))
estimator.evaluate(batches)
