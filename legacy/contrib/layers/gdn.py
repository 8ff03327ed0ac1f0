"""Generalised divisive normalisation: tf-slim's layer, with the two things that it lost on its way out of tf.contrib."""

from __future__ import annotations

import tensorflow.compat.v1 as tf
from tf_slim.layers import GDN, gdn, layers

__all__ = ["GDN", "gdn"]

# Its lower bound names a gradient that nobody registers any more: inputs below the bound get it where it moves them up.
tf.RegisterGradient("GDNLowerBound")(GDN._lower_bound_grad)

# It describes its inputs by a class of TensorFlow's frozen Keras, which the Keras 2 that it stands on refuses.
layers.input_spec = tf.keras.layers
