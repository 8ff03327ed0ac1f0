"""Names of ``tf.contrib`` that mean an object which TensorFlow 1 has outside of contrib, too."""

from __future__ import annotations

_CELLS = (
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell", "LSTMStateTuple", "MultiRNNCell",
    "RNNCell", "ResidualWrapper",
)  # fmt: skip
_OF_SLIM = (
    "avg_pool2d", "batch_norm", "conv2d", "conv2d_transpose", "convolution2d", "convolution2d_transpose", "dropout", "flatten", "fully_connected", "l1_regularizer", "l2_regularizer",
    "max_pool2d", "one_hot_encoding", "variance_scaling_initializer", "xavier_initializer", "xavier_initializer_conv2d",
)  # fmt: skip
_DATA = ("Dataset", "FixedLengthRecordDataset", "Iterator", "TFRecordDataset", "TextLineDataset")  # before TensorFlow 1.4
SAME_NAMES = {
    **{f"contrib.data.{name}": f"data.{name}" for name in _DATA},
    **{f"contrib.rnn.{name}": f"nn.rnn_cell.{name}" for name in _CELLS},
    **{f"contrib.rnn.{name}": f"nn.{name}" for name in ("static_rnn", "static_bidirectional_rnn", "static_state_saving_rnn")},
    **{f"contrib.slim.{name}": f"contrib.layers.{name}" for name in _OF_SLIM},
    **{f"contrib.framework.{name}": f"train.{name}" for name in ("get_global_step", "get_or_create_global_step")},
}
"""Name below ``tf``: the other name of the same object."""


def outside_of_contrib(name: str) -> str:
    """Returns the name outside of contrib of what a name below ``tensorflow`` means; the name itself if there is none.

    Example:
        >>> outside_of_contrib("tensorflow.contrib.rnn.GRUCell"), outside_of_contrib("tensorflow.nn.relu")
        ('tensorflow.nn.rnn_cell.GRUCell', 'tensorflow.nn.relu')
        >>> outside_of_contrib("tensorflow.contrib.data.Dataset.range")
        'tensorflow.data.Dataset.range'
    """
    below = name.removeprefix("tensorflow.")
    owner, _, method = below.rpartition(".")
    if below in SAME_NAMES:
        return f"tensorflow.{SAME_NAMES[below]}"
    return f"tensorflow.{SAME_NAMES[owner]}.{method}" if owner in SAME_NAMES else name
