"""Run as a script in a process of its own: TF1 trains, and Keras goes on from the converted checkpoint, and back.

The environment decides which Keras: ``TF_USE_LEGACY_KERAS`` is set by the caller before TensorFlow is imported.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FLAVOUR, FOLDER = sys.argv[1], Path(sys.argv[2])
os.environ["TF_USE_LEGACY_KERAS"] = "0" if FLAVOUR == "k3" else "1"
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from estimator_bridge.compat.checkpoint import convert  # noqa: E402

if FLAVOUR == "k3":
    import keras
else:
    import tf_keras as keras
OPTIMIZERS = keras.optimizers.legacy if FLAVOUR == "legacy" else keras.optimizers

v1 = tf.compat.v1
RATE, BEFORE, AFTER = 0.01, 20, 100
RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(0, 10, (BEFORE + AFTER, 4)).astype("i4")
FACTORS = RANDOM.normal(size=(BEFORE + AFTER, 4, 3)).astype("f4")
TARGETS = (RANDOM.normal(size=(10, 3)).astype("f4")[IDS] * FACTORS).sum(-1, keepdims=True)
INITIAL = {
    "embeddings": RANDOM.normal(size=(10, 3)).astype("f4") * 0.3,
    "kernel": RANDOM.normal(size=(3, 1)).astype("f4") * 0.3,
    "bias": np.zeros(1, "f4"),
}
Case = tuple[Callable[[], Any], str, dict[str, Any]]
CASES: dict[str, Case] = {
    "GradientDescent": (lambda: v1.train.GradientDescentOptimizer(RATE), "SGD", {}),
    "Momentum": (lambda: v1.train.MomentumOptimizer(RATE, 0.9), "SGD", {"momentum": 0.9}),
    "Nesterov": (
        lambda: v1.train.MomentumOptimizer(RATE, 0.9, use_nesterov=True),
        "SGD",
        {"momentum": 0.9, "nesterov": True},
    ),
    "Adagrad": (lambda: v1.train.AdagradOptimizer(RATE), "Adagrad", {"initial_accumulator_value": 0.1, "epsilon": 1e-30}),
    "Adam": (lambda: v1.train.AdamOptimizer(RATE), "Adam", {"epsilon": 1e-8}),
    "RMSProp": (lambda: v1.train.RMSPropOptimizer(RATE), "RMSprop", {"rho": 0.9, "epsilon": 1e-10}),
    "RMSProp with momentum": (
        lambda: v1.train.RMSPropOptimizer(RATE, momentum=0.5),
        "RMSprop",
        {"rho": 0.9, "momentum": 0.5, "epsilon": 1e-10},
    ),
    "centered RMSProp": (
        lambda: v1.train.RMSPropOptimizer(RATE, momentum=0.5, centered=True),
        "RMSprop",
        {"rho": 0.9, "momentum": 0.5, "epsilon": 1e-10, "centered": True},
    ),
    "Ftrl": (
        lambda: v1.train.FtrlOptimizer(RATE, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
        "Ftrl",
        {"initial_accumulator_value": 0.1, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02},
    ),
    "Adadelta": (
        lambda: v1.train.AdadeltaOptimizer(RATE * 20, 0.95, 1e-8),
        "Adadelta",
        {"learning_rate": RATE * 20, "rho": 0.95, "epsilon": 1e-8},
    ),
}


def loss(values: list[Any], step: int | None, batch: tuple[Any, Any, Any] | None, sparse: bool) -> Any:
    ids, factors, targets = batch if batch else (IDS[step], FACTORS[step], TARGETS[step])
    rows = tf.gather(values[0], ids) if sparse else tf.matmul(tf.one_hot(ids, 10), values[0])
    return tf.reduce_mean((tf.matmul(rows * factors, values[1]) + values[2] - targets) ** 2)


class Old:
    """The TF1 graph; its embedding is partitioned."""

    def __init__(self, optimizer: Any, sparse: bool) -> None:
        with v1.variable_scope("model"):
            parts = v1.get_variable(
                "embeddings", [10, 3], partitioner=v1.fixed_size_partitioner(2), initializer=_given(INITIAL["embeddings"])
            )
            rest = [v1.get_variable(name, initializer=INITIAL[name]) for name in ("kernel", "bias")]
        self.values = [tf.convert_to_tensor(parts), *rest]
        self.batch = (v1.placeholder(tf.int32, [4]), v1.placeholder(tf.float32, [4, 3]), v1.placeholder(tf.float32, [4, 1]))
        if sparse:
            self.values[0] = parts
            rows = v1.nn.embedding_lookup(parts, self.batch[0], partition_strategy="div")
            error = tf.matmul(rows * self.batch[1], rest[0]) + rest[1] - self.batch[2]
            value = tf.reduce_mean(error**2)
            self.values[0] = tf.convert_to_tensor(parts)
        else:
            value = loss(self.values, None, self.batch, sparse)
        self.step = v1.train.get_or_create_global_step()
        self.train = optimizer.minimize(value, self.step)
        self.saver = v1.train.Saver()

    def run(self, session: Any, steps: Iterator[int] | range) -> None:
        for step in steps:
            session.run(self.train, dict(zip(self.batch, (IDS[step], FACTORS[step], TARGETS[step]), strict=True)))


class New:
    """The same as a Keras checkpoint has it: a tf.train.Checkpoint of variables and optimizer."""

    def __init__(self, name: str, sparse: bool) -> None:
        _, kind, given = CASES[name]
        self.sparse = sparse
        self.optimizer = getattr(OPTIMIZERS, kind)(**({"learning_rate": RATE} | given))
        if FLAVOUR == "k3":
            self.variables = [keras.Variable(value, name=key) for key, value in INITIAL.items()]
        else:
            self.variables = [tf.Variable(value, name=key) for key, value in INITIAL.items()]
        if FLAVOUR == "legacy":
            self.optimizer._create_all_weights(self.variables)
        else:
            self.optimizer.build(self.variables)
        tracked = dict(zip(INITIAL, self.variables, strict=True))
        self.checkpoint = tf.train.Checkpoint(model=tf.train.Checkpoint(**tracked), optimizer=self.optimizer)

    def raw(self, variable: Any) -> Any:
        return variable._value if FLAVOUR == "k3" else variable

    def run(self, steps: range) -> None:
        @tf.function(reduce_retracing=True)
        def train(*batch: Any) -> None:
            values = [self.raw(variable) for variable in self.variables]
            with tf.GradientTape() as tape:
                value = loss(values, None, batch, self.sparse)
            self.optimizer.apply_gradients(zip(tape.gradient(value, values), self.variables, strict=True))

        for step in steps:
            train(IDS[step], FACTORS[step], TARGETS[step])

    def values(self) -> list[Any]:
        return [np.array(variable) for variable in self.variables]


def forward(name: str, sparse: bool) -> dict[str, Any]:
    folder = FOLDER / f"{FLAVOUR}-{name}-{sparse}"
    (folder / "old").mkdir(parents=True)
    with tf.Graph().as_default():
        old = Old(CASES[name][0](), sparse)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            old.run(session, range(BEFORE))
            saved = old.saver.save(session, str(folder / "old" / "model.ckpt"), global_step=old.step)
            old.run(session, range(BEFORE, BEFORE + AFTER))
            reference = session.run(old.values)
    like = New(name, sparse).checkpoint.save(str(folder / "like" / "ckpt"))
    report = convert(saved, folder / "new" / "model.ckpt-20", like=like)
    new = New(name, sparse)
    new.checkpoint.restore(str(folder / "new" / "model.ckpt-20")).assert_consumed()
    new.run(range(BEFORE, BEFORE + AFTER))
    with tf.Graph().as_default():  # the same files, restored as before
        old = Old(CASES[name][0](), sparse)
        with v1.Session() as session:
            old.saver.restore(session, str(folder / "new" / "model.ckpt-20"))
            old.run(session, range(BEFORE, BEFORE + AFTER))
            again = session.run(old.values)
    return {
        "diff": difference(reference, new.values()),
        "old_diff": difference(reference, again),
        "report": report.to_json(),
    }


def backward(name: str, sparse: bool) -> dict[str, Any]:
    folder = FOLDER / f"{FLAVOUR}-{name}-{sparse}-back"
    new = New(name, sparse)
    new.run(range(BEFORE))
    saved = new.checkpoint.save(str(folder / "new" / "ckpt"))
    new.run(range(BEFORE, BEFORE + AFTER))
    reference = new.values()
    (folder / "like").mkdir()
    with tf.Graph().as_default():
        old = Old(CASES[name][0](), sparse)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            like = old.saver.save(session, str(folder / "like" / "model.ckpt"))
            report = convert(saved, folder / "old" / "model.ckpt-20", to="name-based", like=like)
            old.saver.restore(session, str(folder / "old" / "model.ckpt-20"))
            assert session.run(old.step) == BEFORE
            old.run(session, range(BEFORE, BEFORE + AFTER))
            return {"diff": difference(reference, session.run(old.values)), "report": report.to_json()}


def difference(one: list[Any], other: list[Any]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def _given(value: Any) -> Any:
    def initializer(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        start = partition_info.var_offset[0] if partition_info else 0
        return tf.constant(value[start : start + shape[0]], dtype)

    return initializer


def attempt(direction: Callable[[str, bool], dict[str, Any]], name: str, sparse: bool) -> dict[str, Any]:
    try:
        return direction(name, sparse)
    except Exception as error:  # noqa: BLE001 - told to the test, which fails for this case alone
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def main() -> None:
    """Every case both ways; the results go to a file."""
    cases = [(name, sparse, direction) for name in CASES for sparse in (False, True) for direction in (forward, backward)]
    results = {f"{n}|{'sparse' if s else 'dense'}|{d.__name__}": attempt(d, n, s) for n, s, d in cases}
    (FOLDER / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
