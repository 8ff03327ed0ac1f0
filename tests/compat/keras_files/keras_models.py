"""One small network as TF1 trains it and as each Keras has it, and functions that a user's own module would have."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
FAMILIES = {"legacy": "tf_keras", "new": "tf_keras", "keras3": "keras"}  # and the library that has it
RATE = 0.05
X = np.random.RandomState(0).normal(size=(6, 4)).astype(np.float32)
Y = X[:, :1] * X[:, 1:2]
Values = dict[str, np.ndarray]


def graph(optimizer: Any = None, shards: int = 2) -> Any:
    """The old graph, its first kernel partitioned: prediction and train_op."""
    with v1.variable_scope("net"):
        cut = v1.fixed_size_partitioner(shards)
        kernel = v1.get_variable("hidden/kernel", [4, 3], partitioner=cut, initializer=v1.glorot_uniform_initializer(1))
        bias = v1.get_variable("hidden/bias", [3], initializer=v1.constant_initializer(0.1))
        hidden = tf.tanh(tf.matmul(X, tf.convert_to_tensor(kernel)) + bias)
        out = [
            v1.get_variable(f"out/{n}", s, initializer=v1.ones_initializer()) for n, s in (("kernel", [3, 1]), ("bias", [1]))
        ]
        prediction = tf.matmul(hidden, out[0]) + out[1]
    loss = tf.reduce_mean((prediction - Y) ** 2)
    return prediction, (optimizer or v1.train.AdamOptimizer(RATE)).minimize(loss, v1.train.get_or_create_global_step())


def train_old(folder: Path, optimizer: Any = None, steps: int = 3) -> Path:
    """A checkpoint by TF1's Saver."""
    folder.mkdir(parents=True)
    with tf.Graph().as_default(), v1.Session() as session:
        _, train = graph(optimizer() if optimizer else None)
        session.run(v1.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
        return Path(v1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=v1.train.get_global_step()))


def restore_old(prefix: Path, shards: int = 2, optimizer: Any = None) -> tuple[np.ndarray, Values]:
    """Restores into the old graph with TF1's Saver: its prediction, and all variables by name, with slices put together."""
    with tf.Graph().as_default(), v1.Session() as session:
        prediction, _ = graph(optimizer() if optimizer else None, shards)
        v1.train.Saver().restore(session, str(prefix))
        again = str(prefix.with_name("again"))
        v1.train.Saver(write_version=v1.train.SaverDef.V2).save(session, again)
        return session.run(prediction), read(again)


def read(prefix: str | Path) -> Values:
    """Everything in a checkpoint, by TF's reader."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def network(family: str, compiled: bool = True) -> Any:
    """The same network of a Keras."""
    library = importlib.import_module(FAMILIES[family])
    layers = library.layers
    model = library.Sequential(
        [
            layers.InputLayer((4,)),
            layers.Dense(3, activation="tanh", name="hidden"),
            layers.Dense(1, name="out"),
        ]
    )
    if compiled:
        namespace = library.optimizers.legacy if family == "legacy" else library.optimizers
        model.compile(optimizer=namespace.Adam(RATE, epsilon=1e-8), loss="mse")
    return model


def legacy_network() -> Any:
    return network("legacy")


def new_network() -> Any:
    return network("new")


def keras3_network() -> Any:
    return network("keras3")


def built(family: str) -> Any:
    """The network with its optimizer's slots."""
    model = network(family)
    if family == "legacy":
        model.optimizer._create_all_weights(model.trainable_variables)
    else:
        model.optimizer.build(model.trainable_variables)
    return model
