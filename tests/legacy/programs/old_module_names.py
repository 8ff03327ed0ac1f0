"""Imports modules by the names that they had in TensorFlow 1."""

from estimator_bridge import legacy

legacy.install()
import tensorflow as tf
import tensorflow.python.estimator.canned.dnn as old_dnn
import tensorflow_estimator.python.estimator.canned.dnn as real_dnn
import tensorflow_estimator.python.estimator.head.base_head as real_head
from tensorflow.estimator import Estimator
from tensorflow.estimator.export import ServingInputReceiver
from tensorflow.python.estimator import keras, model_fn, run_config
from tensorflow.python.estimator.head import base_head  # never a name of TensorFlow's own
from tensorflow.python.tpu import tpu_config
from tensorflow_estimator.python.estimator.keras import model_to_estimator

assert old_dnn.DNNClassifier is real_dnn.DNNClassifier
assert base_head is real_head and real_head.__spec__.name == real_head.__name__
assert Estimator is tf.estimator.Estimator
try:
    import tensorflow.python.estimator.no_such_module
except ModuleNotFoundError as error:
    assert "tensorflow.python.estimator.no_such_module" in str(error), error
else:
    raise AssertionError
