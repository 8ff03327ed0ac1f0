"""Calls install() again after it was refused."""

import importlib.metadata
from unittest import mock

from estimator_bridge import errors, legacy

original = importlib.metadata.version
older = mock.Mock(side_effect=lambda name: "1.0" if name == "tensorflow-estimator" else original(name))
with mock.patch.object(importlib.metadata, "version", older):
    try:
        legacy.install()
    except errors.BridgeError:
        pass
legacy.install()
import tensorflow as tf

tf.estimator.Estimator
