"""Runs a script on native TensorFlow 2.15, with compat.v1 in TensorFlow's place: TensorFlow 1, near enough. No bridge."""

import runpy
import sys

import tensorflow as tf

assert tf.compat.v1.estimator.Estimator  # imported completely before it finds the version 1 API under TensorFlow's name
tf.compat.v1.disable_v2_behavior()
sys.modules["tensorflow"] = tf.compat.v1
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
assert not [name for name in sys.modules if name.startswith("estimator_bridge")]
