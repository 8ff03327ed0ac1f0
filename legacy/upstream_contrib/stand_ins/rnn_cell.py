"""TensorFlow 1's recurrent cells: those of the Keras on which ``tf.nn.rnn_cell`` stands, and TensorFlow's own private names."""

from __future__ import annotations

import importlib

import tensorflow as tf
from tensorflow.python.ops import rnn_cell_impl

_cells = tf.compat.v1.nn.rnn_cell
_FILES = {kind.__module__ for kind in (_cells.RNNCell, _cells.DropoutWrapper)}  # of tf_keras, or of keras on TensorFlow 2.15

for _module in (rnn_cell_impl, *map(importlib.import_module, sorted(_FILES))):
    globals().update({name: value for name, value in vars(_module).items() if not name.startswith("__")})
