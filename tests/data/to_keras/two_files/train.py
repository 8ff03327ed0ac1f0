"""A regression whose input function is in another file."""

import rows
import tensorflow as tf

regressor = tf.estimator.DNNRegressor([4], [tf.feature_column.numeric_column("x")])
regressor.train(rows.input_fn)
