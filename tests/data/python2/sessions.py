"""Of Python 2 and NumPy 1, without an Estimator."""

import json, sys
import numpy as np
import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

def step(x):
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_sum(tf.square(w - x))
    return tf.train.GradientDescentOptimizer(0.25).minimize(loss, tf.train.get_or_create_global_step()), loss

sizes = map(int, "4,2".split(","))
seen = {"sizes": [len(sizes), sizes[0] / 3], "dtype": np.zeros(1, np.float).dtype.name}
with tf.Graph().as_default():
    x = tf.placeholder(tf.float32, [2])
    train, loss = step(x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        seen["session"] = [float(session.run([train, loss], {x: [2, 4]})[1]) for _ in xrange(3)]
with tf.Graph().as_default():
    train, loss = step(tf.constant([2.0, 4.0]))
    hooks = [tf.train.StopAtStepHook(last_step=3)]
    seen["monitored"] = []
    with tf.train.MonitoredTrainingSession(hooks=hooks, checkpoint_dir=sys.argv[1]) as session:
        while not session.should_stop():
            seen["monitored"].append(float(session.run([train, loss])[1]))
seen["raw"] = np.array([1], np.uint8).tostring() == b"\x01"
seen["mnist"] = len(input_data.read_data_sets(None, fake_data=True).train.next_batch(3, True)[0])
print json.dumps(seen)
