"""Calls install() after the first use of an alias failed."""

import os
import sys
from typing import Any

import tensorflow as tf

os.environ["TF_USE_LEGACY_KERAS"] = "1"
modules: dict[str, Any] = sys.modules
modules["tf_keras"] = None  # as if it could not be imported
try:
    tf.keras.layers
except ImportError:
    pass
del modules["tf_keras"]
from estimator_bridge import legacy

legacy.install()
assert "tf_keras" in tf.keras.layers.Dense.__module__
