"""A regression whose input function and whose model are in other files."""

import rows
import tensorflow as tf
from network import model_fn

estimator = tf.estimator.Estimator(model_fn)
estimator.train(rows.input_fn)
print("step", estimator.evaluate(rows.input_fn)["global_step"])
