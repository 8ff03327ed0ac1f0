"""``tf.contrib.util``: tensors and protocol buffers, and the operations that a graph needs."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.framework.meta_graph import ops_used_by_graph_def, stripped_op_list_for_graph
from tensorflow.python.framework.tensor_util import constant_value

__all__ = ["constant_value", "make_ndarray", "make_tensor_proto", "ops_used_by_graph_def", "stripped_op_list_for_graph"]

make_ndarray = tf.make_ndarray
make_tensor_proto = tf.make_tensor_proto
