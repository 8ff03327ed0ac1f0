"""TensorFlow 1's recurrent cells: those of Keras 2, on which ``tf.nn.rnn_cell`` stands, and TensorFlow's own private names."""

from __future__ import annotations

from tensorflow.python.ops import rnn_cell_impl
from tf_keras.src.layers.rnn import legacy_cell_wrappers, legacy_cells

for _module in (rnn_cell_impl, legacy_cell_wrappers, legacy_cells):
    globals().update({name: value for name, value in vars(_module).items() if not name.startswith("__")})
