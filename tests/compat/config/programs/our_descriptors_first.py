"""A ConfigProto of ours, made before TensorFlow is imported, is TensorFlow's too."""

from __future__ import annotations

import sys

from estimator_bridge.compat.config.proto.fields import config_proto

own = config_proto()
assert "tensorflow" not in sys.modules

import tensorflow as tf

own.gpu_options.allow_growth = True
assert tf.compat.v1.ConfigProto.FromString(own.SerializeToString()).gpu_options.allow_growth
