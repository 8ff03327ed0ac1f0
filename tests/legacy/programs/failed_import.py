"""Calls install() after an import of the Estimator that may fail."""

try:
    from tensorflow_estimator.python.estimator import estimator
except ImportError:
    pass
from estimator_bridge import legacy

legacy.install()
import tensorflow as tf
from tensorflow import *
from tensorflow_estimator.python.estimator import estimator as real

assert tf.compat.v1.estimator.Estimator is real.Estimator and estimator.Estimator is real.EstimatorV2
