"""Asks TensorFlow for its version in each way, and wants TensorFlow 1."""

import json

import tensorflow as tf
from tensorflow import version

VERSIONS = {"__version__": tf.__version__, "VERSION": tf.VERSION, "version": version.VERSION, "v1": tf.compat.v1.__version__}
print(json.dumps(VERSIONS))
if int(tf.__version__.split(".")[0]) != 1:
    raise RuntimeError("TensorFlow 1 is needed")
tf.estimator.RunConfig
