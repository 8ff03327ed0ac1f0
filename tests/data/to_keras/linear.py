"""Linear models, or a wide and deep one: ``linear.py [classes | numbers]``."""

import sys

import numpy as np
import tensorflow as tf

TOWNS = ["rome", "oslo", "lima"]
draws = np.random.RandomState(0)
rows = {
    "size": draws.uniform(0.0, 2.0, [60, 1]).astype(np.float32),
    "age": draws.uniform(0.0, 9.0, [60]).astype(np.float32),
    "town": draws.choice(TOWNS, [60]),
}
price = (rows["size"][:, 0] * 2.0 + rows["age"] / 4.0).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((rows, price)).batch(20).repeat(4)


def classes_input_fn():
    return input_fn().map(lambda features, labels: (features, tf.to_int32(labels > 3.0)))


def tensors_input_fn():
    return {name: tf.constant(values) for name, values in rows.items()}, tf.constant(price)


size = tf.feature_column.numeric_column("size")
age = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("age"), [3.0, 6.0])
town = tf.feature_column.categorical_column_with_vocabulary_list("town", TOWNS)
both = tf.feature_column.crossed_column([age, "town"], 7)
deep = [size, tf.feature_column.embedding_column(town, 2), tf.feature_column.indicator_column(age)]
only = sys.argv[1:]

if not only:
    plain = tf.estimator.LinearRegressor([size, age, town, both])
    plain.train(input_fn)
    rate = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)
    sparse = tf.estimator.LinearClassifier(feature_columns=[size, age, both], optimizer=rate)
    sparse.train(classes_input_fn, steps=9)
    print("error below 20:", plain.evaluate(input_fn)["average_loss"] < 20.0)

if only == ["classes"]:
    wide = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[town, both],
        dnn_feature_columns=deep,
        dnn_hidden_units=[5, 3],
        dnn_optimizer="Adam",
        n_classes=2,
    )
    wide.train(classes_input_fn)

if only == ["numbers"]:
    numbers = tf.estimator.DNNLinearCombinedRegressor(
        linear_feature_columns=[age],
        linear_optimizer=tf.train.GradientDescentOptimizer(0.001),
        dnn_feature_columns=deep,
        dnn_hidden_units=[4],
        config=tf.contrib.learn.RunConfig(save_checkpoints_steps=100),
    )
    numbers.train(input_fn)
    numbers.train(tensors_input_fn, steps=3)
    print(numbers.evaluate(input_fn)["average_loss"])
