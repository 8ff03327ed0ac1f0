"""A script for TensorFlow 1 that disables TensorFlow 2's behavior and has a graph of its own outside of its model_fn."""

import sys
import numpy as np
import tensorflow as tf

tf.disable_v2_behavior()
tf.disable_eager_execution()
outside = tf.constant(3.0)  # a graph of the script's own

def model_fn(features, labels, mode):
    width = features["x"].shape[1].value
    assert isinstance(features["x"].shape[1], tf.Dimension)
    kernel = tf.get_variable("kernel", [width, 1], initializer=tf.constant_initializer(0.5))
    loss = tf.reduce_mean(tf.square(tf.matmul(features["x"], kernel) - labels))
    train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, predictions=kernel,
                                      eval_metric_ops={"mean": tf.metrics.mean(labels)})

def input_fn():
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1] * 2)).repeat(30).batch(4)
    assert data.output_shapes[0]["x"][1].value == 3
    return data.make_one_shot_iterator().get_next()

def main(argv):
    estimator = tf.estimator.Estimator(model_fn, argv[1])
    estimator.train(input_fn, max_steps=20)
    result = estimator.evaluate(input_fn, steps=2)
    with tf.Session() as session:
        print("OUTSIDE", session.run(outside + result["mean"]))
    print("STEP", result["global_step"], tf.executing_eagerly())

if __name__ == "__main__":
    tf.app.run()
