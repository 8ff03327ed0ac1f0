"""A training on asynchronous parameter servers as in TensorFlow 1: MODEL_DIR. It prints the interfaces that its server listens on."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import Any

import numpy as np
import tensorflow as tf


def input_fn() -> Any:
    """Gives the same rows to all tasks."""
    x = np.arange(16, dtype=np.float32).reshape(8, 2)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1])).repeat().batch(4)


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Makes a linear model."""
    out = tf.layers.dense(features["x"], 1)
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.001).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, out, loss, train_op)


def write_line(*words: object) -> None:
    """Prints at once: a task may be killed later."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class InterfacesHook(tf.train.SessionRunHook):
    """Prints the interface of each listening socket at the end of the training."""

    def end(self, session: Any) -> None:
        """Looks at all file descriptors of this process."""
        for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as one:
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    bound = one.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
                    write_line("listens on", bound.rstrip(bytes(1)).decode() or "all")


if __name__ == "__main__":
    write_line("drew", np.random.randint(2**31))
    config = tf.estimator.RunConfig(sys.argv[1], save_checkpoints_steps=10)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    train = tf.estimator.TrainSpec(input_fn, max_steps=20, hooks=[InterfacesHook()] if sys.platform == "linux" else [])
    tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(input_fn, steps=1))
