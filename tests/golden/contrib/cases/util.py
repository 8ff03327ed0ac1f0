"""Cases of tf.contrib.util."""

import numpy as np
import tensorflow as tf

util = tf.contrib.util


def protos():
    proto = util.make_tensor_proto([[1, 2]], tf.float32, [1, 2])
    return [proto.SerializeToString().hex(), util.make_ndarray(proto), util.constant_value(tf.constant([3, 4]) * 1)]


def ops_used():
    with tf.Graph().as_default() as graph:
        tf.multiply(tf.constant(1), tf.placeholder(tf.int32), name="sum")
        np.testing.assert_equal(len(graph.get_operations()), 3)
    definition = graph.as_graph_def()
    stripped = util.stripped_op_list_for_graph(definition)
    return [sorted(util.ops_used_by_graph_def(definition)), sorted(op.name for op in stripped.op)]
