"""A job as it was written in 2017."""

import json
import os
import sys

import numpy as np
import tensorflow as tf

tf.disable_v2_behavior()
tf.compat.v1.disable_eager_execution()
tf.reset_default_graph()
import helper

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 2, "Steps.")
flags.DEFINE_string("model_dir", None, "Folder.")
flags.DEFINE_string("fail", "", "Where.")
seen = {}

def check(features):
    try:
        return features["missing"]
    except KeyError:
        raise ValueError("no such feature")

def model_fn(features, labels, mode):
    x = features["x"]
    seen[mode] = [x.shape[1].value, tf.executing_eagerly()]
    if FLAGS.fail == mode:
        check(features)
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(x, 1)) if labels is not None else None
    train_op = helper.train_op(loss) if mode == tf.estimator.ModeKeys.TRAIN else None
    return tf.estimator.EstimatorSpec(mode, {"x": x}, loss, train_op)

def input_fn():
    x = np.ones((8, 3), np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).repeat(2).batch(4)

def main(argv):
    seen["argv"] = argv
    seen["flags"] = [FLAGS.steps, FLAGS.model_dir]
    seen["stdin"] = sys.stdin.read()
    own = tf.placeholder(tf.float32, [None, 2])
    with tf.Session() as session:
        seen["session"] = session.run(own + 1, {own: [[1, 2]]}).tolist()
    tf.logging.set_verbosity(tf.logging.ERROR)
    estimator = tf.estimator.Estimator(model_fn, FLAGS.model_dir)
    estimator.train(input_fn, steps=FLAGS.steps)
    seen["graph"] = [own.graph is tf.get_default_graph(), tf.executing_eagerly(), own.shape[1].value]
    seen["step"] = int(estimator.evaluate(input_fn)["global_step"])
    seen["predictions"] = len(list(estimator.predict(input_fn)))
    print(json.dumps(seen))
    return 7

if __name__ == "__main__":
    tf.app.run()
