"""Compares the names of every namespace, before and after a second call."""

import sys

from estimator_bridge import legacy

legacy.install()
import tensorflow as tf
import tensorflow.compat.v1 as tf1
import tensorflow.compat.v2 as tf2
from tensorflow_estimator.python.estimator import estimator as real

assert tf.estimator.Estimator is tf.compat.v2.estimator.Estimator is tf2.estimator.Estimator is real.EstimatorV2
assert tf.compat.v1.estimator.Estimator is tf1.estimator.Estimator is real.Estimator
assert tf1.estimator.tpu.TPUEstimator and tf1.estimator.inputs.numpy_input_fn
assert {"DNNClassifier", "RunConfig", "train_and_evaluate", "export", "experimental"} <= set(dir(tf.estimator))

before = tf.estimator, tf1.estimator, list(sys.meta_path), set(sys.modules)
legacy.install()
assert before == (tf.estimator, tf1.estimator, list(sys.meta_path), set(sys.modules))

from tensorflow.python.autograph.core import config

assert "DoNotConvert rule for tf_keras" in map(str, config.CONVERSION_RULES)
