"""A network in classes, with layers that have no names, norms of contrib, and values from another checkpoint, so ``--body shim`` keeps it."""

import sys

import numpy as np
import tensorflow as tf

CHECKPOINT = sys.argv[1] if len(sys.argv) > 1 else None


def normalized(net):
    return tf.contrib.layers.layer_norm(net, begin_norm_axis=-1, begin_params_axis=-1, scope="norm")


class Encoder(object):
    """Two layers in a scope with a name of its own, and one behind it."""

    def __init__(self, x, units, scope=None):
        with tf.variable_scope(scope, default_name="encoder"):
            size = tf.assert_less_equal(tf.shape(x)[1], 10)
            with tf.control_dependencies([size]):
                net = x
                for _ in range(2):
                    net = tf.nn.relu(tf.layers.dense(net, units))
            net = normalized(net)
        self.width = net.shape[-1].value
        self.output = tf.layers.dense(net, self.width)


def mapped(variables):
    names = [variable.name.split(":")[0] for variable in variables]
    return {"old/kernel": name for name in names if name == "encoder/dense/kernel"}


def model_fn(features, labels, mode, params):
    if mode == tf.estimator.ModeKeys.PREDICT:
        features = features["sent"]
    x = tf.feature_column.input_layer(features, params["columns"])
    net = Encoder(x, params["units"]).output
    logits = tf.layers.dense(net, 2)
    if params["checkpoint"]:
        assignment = mapped(tf.trainable_variables())
        tf.train.init_from_checkpoint(params["checkpoint"], assignment)
        tf.train.init_from_checkpoint(params["checkpoint"], {"old/": "encoder/norm/"})
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdagradOptimizer(0.001).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.RandomState(3).uniform(-1, 1, size=(80, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat(4).batch(16)


columns = [tf.feature_column.numeric_column("x", [4])]
estimator = tf.estimator.Estimator(model_fn, "model", params={"units": 6, "columns": columns, "checkpoint": CHECKPOINT})
estimator.train(input_fn, steps=15)
rows = list(estimator.predict(lambda: input_fn().map(lambda features, labels: ({"sent": features},)).take(1)))
print(len(rows), "rows")
