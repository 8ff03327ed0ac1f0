"""What a spec is given without need: a scaffold without values, and names that are None among others; sizes in a text, NumPy in the input."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode, params):
    train_op, loss, hooks = None, None, None
    net = features["x"]
    for units in params.units.split(","):
        net = tf.layers.dense(net, int(units), tf.nn.tanh)
    out = tf.layers.dense(net, 1)
    scaffold = tf.train.Scaffold(
        saver=tf.train.Saver(max_to_keep=3),
        local_init_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer()),
    )
    if mode == tf.estimator.ModeKeys.PREDICT:
        spec = tf.estimator.EstimatorSpec(mode, {"out": out})
    else:
        labels = tf.reshape(labels, [-1])
        out = tf.reshape(out, [-1])  # predictions have another shape
        loss = tf.losses.mean_squared_error(labels, out)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        spec = tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold, training_hooks=hooks)
    return spec


def input_fn():
    x = np.random.RandomState(0).rand(64, 4).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).batch(8)
    dataset = dataset.map(lambda features, y: (features, tf.py_func(np.negative, [y], tf.float32)))
    dataset = dataset.make_one_shot_iterator()
    return dataset.get_next()


params = tf.contrib.training.HParams(units="6,4")
estimator = tf.estimator.Estimator(model_fn, params=params)
estimator.train(input_fn)
print("metrics:", sorted(estimator.evaluate(input_fn)))
print("shape", next(estimator.predict(input_fn))["out"].shape)
