"""Makes tests/golden/statistics with TensorFlow 1.15.5: python make_statistics.py FOLDER.

What a checkpoint keeps beside weights and slots: moving averages of variables, and of what batch normalization sees.
"""

import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.contrib import opt, slim

v1 = tf.compat.v1
FOLDER = sys.argv[1]
STEPS, MORE, RATE, DECAY = 3, 3, 0.05, 0.7
X = np.random.RandomState(0).normal(size=(6, 4)).astype(np.float32)
Y = X[:, :1] * X[:, 1:2]
ONE_THREAD = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)  # the same bytes each time


def dense():
    hidden = v1.layers.dense(X, 3, tf.tanh, name="hidden")
    return v1.layers.dense(hidden, 1, name="out")


def exponential_moving_average(loss, step):
    """tf.train.ExponentialMovingAverage after each step of Adam."""
    train = v1.train.AdamOptimizer(RATE).minimize(loss, step)
    with tf.control_dependencies([train]):
        apply = tf.train.ExponentialMovingAverage(DECAY).apply(v1.trainable_variables())
    return apply, v1.train.Saver()


def moving_average_optimizer(loss, step):
    """tf.contrib's, with the Saver that writes the averages under the names of the variables."""
    optimizer = opt.MovingAverageOptimizer(v1.train.AdamOptimizer(RATE), DECAY)
    return optimizer.minimize(loss, step), optimizer.swapping_saver()


def averages(name, make):
    """Trains, saves, records variables and averages, trains on and records them again."""
    with tf.Graph().as_default():
        v1.set_random_seed(5)
        loss = tf.reduce_mean((dense() - Y) ** 2)
        train, saver = make(loss, v1.train.get_or_create_global_step())
        found = {v.op.name: v for v in v1.global_variables() if "Adam" not in v.op.name and "power" not in v.op.name}
        with v1.Session(config=ONE_THREAD) as session:
            session.run(v1.global_variables_initializer())
            for _ in range(STEPS):
                session.run(train)
            saver.save(session, FOLDER + "/" + name, STEPS, write_meta_graph=False, write_state=False)
            arrays = {"before/" + key: value for key, value in session.run(found).items()}
            for _ in range(MORE):
                session.run(train)
            arrays.update({"after/" + key: value for key, value in session.run(found).items()})
    np.savez(FOLDER + "/" + name + ".npz", x=X, y=Y, **arrays)


TRAINING = [True]


def layers():
    """Three layers of one size, as tf.layers names them."""
    net = X
    for _ in range(3):
        net = v1.layers.batch_normalization(v1.layers.dense(net, 4), training=TRAINING[0])
    return v1.layers.dense(net, 1, name="out")


def contrib():
    """The same as slim names them; it has no gamma unless asked for."""
    net = X
    norm = {"is_training": TRAINING[0], "decay": 0.9}
    with slim.arg_scope([slim.fully_connected], normalizer_fn=slim.batch_norm, normalizer_params=norm):
        for number in range(3):
            net = slim.fully_connected(net, 4, activation_fn=None, scope="fc%d" % number)
    return slim.fully_connected(net, 1, activation_fn=None, scope="out")


def batch_norm(name, make):
    """Trains, saves, records what the model predicts."""
    with tf.Graph().as_default():
        v1.set_random_seed(5)
        TRAINING[0] = v1.placeholder_with_default(False, [])
        prediction = make()
        loss = tf.reduce_mean((prediction - Y) ** 2)
        step = v1.train.get_or_create_global_step()
        with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
            train = v1.train.AdamOptimizer(RATE).minimize(loss, step)
        with v1.Session(config=ONE_THREAD) as session:
            session.run(v1.global_variables_initializer())
            for _ in range(STEPS):
                session.run(train, {TRAINING[0]: True})
            v1.train.Saver().save(session, FOLDER + "/" + name, STEPS, write_meta_graph=False, write_state=False)
            np.savez(FOLDER + "/" + name + ".npz", x=X, prediction=session.run(prediction))


assert v1.VERSION == "1.15.5", v1.VERSION
os.makedirs(FOLDER, exist_ok=True)
averages("averages", exponential_moving_average)
averages("swapped", moving_average_optimizer)
batch_norm("layers", layers)
batch_norm("contrib", contrib)
