"""A TensorFlow 1 training of layers that wait in place of computing, one stage at a time: forward one unit a row, backward two."""

import argparse
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

LAYERS = 8
EVENTS = []  # not among params, which Estimator copies


def idle(stage, is_first, unit, lock):
    """Returns a function with a gradient; it keeps the device of its stage busy."""

    def waits(way, units):
        def wait(rows):
            with lock:
                if is_first:
                    EVENTS.append((time.monotonic(), way, stage))
                time.sleep(units * unit * len(rows))
            return rows

        def call(rows):
            waited = tf.py_func(wait, [rows], rows.dtype, stateful=False)
            waited.set_shape(rows.shape)
            return waited

        return call

    return tf.custom_gradient(lambda rows: (waits("forward", 1)(rows), waits("backward", 2)))


def model_fn(features, labels, mode, params):
    """Dense layers of four units, each with an idle one behind it."""
    net, stages = features, params["stages"]
    locks = [threading.Lock() for _ in range(stages)]
    for layer in range(LAYERS):
        stage, rest = divmod(layer * stages, LAYERS)
        dense = tf.layers.dense(net, 4, name="layer_%d" % layer)
        net = idle(stage, rest == 0, params["unit"], locks[stage])(dense)
    loss = tf.losses.mean_squared_error(labels, tf.reduce_sum(net, 1))
    if params["ballast"]:
        ballast = tf.get_variable("ballast", [params["ballast"]], initializer=tf.zeros_initializer())
        loss += 1e-9 * tf.reduce_sum(ballast)
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    """Returns endless batches of 16 rows."""
    rows = np.random.RandomState(1).rand(64, 4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((rows, rows.sum(1))).repeat().batch(16)


def main():
    """Trains, and leaves the beginning of each forward and backward computation of a stage in a file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--unit", type=float, default=1e-3, help="seconds")
    parser.add_argument("--ballast", type=int, default=0, help="elements of a variable whose gradient workers add up")
    parser.add_argument("--model_dir", default=None)
    parser.add_argument("--events", default=None)
    flags = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.INFO)
    session_config = tf.ConfigProto(inter_op_parallelism_threads=8)  # a layer that waits occupies a thread
    config = tf.estimator.RunConfig(flags.model_dir, tf_random_seed=1, log_step_count_steps=1, session_config=session_config)
    params = {"stages": flags.stages, "unit": flags.unit, "ballast": flags.ballast}
    tf.estimator.Estimator(model_fn, params=params, config=config).train(input_fn, steps=flags.steps)
    if flags.events:
        with open(flags.events, "w") as file:
            file.writelines("%.6f %s %d\n" % event for event in EVENTS)


if __name__ == "__main__":
    main()
