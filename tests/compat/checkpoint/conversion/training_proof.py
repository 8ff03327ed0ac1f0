"""20 steps on one side, convert, 100 steps on the other, against 120 that nothing interrupted: every optimizer, both directions.

Dense and sparse gradients are trained at once, by two models in one loss that share nothing. ``python -m
tests.compat.checkpoint.conversion.training_proof`` writes what it measures to docs/explanation/checkpoint-training.md.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import keras
import numpy as np
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint import convert
from estimator_bridge.compat.checkpoint.request import ConversionReport
from estimator_bridge.compat.checkpoint.slots import ITERATIONS
from tests.compat.checkpoint.conversion.tf1_optimizers import AdaMax, AdamW, BertAdam, Lamb, LazyAdam

v1 = tf.compat.v1
Family = Literal["legacy", "tf_keras", "keras3"]
FAMILIES: dict[Family, Any] = {"legacy": tf_keras.optimizers.legacy, "tf_keras": tf_keras.optimizers}
if keras.__version__.startswith("3"):
    FAMILIES["keras3"] = keras.optimizers
COLUMNS: tuple[tuple[str, Family], ...] = (
    *(("dense", "legacy"), ("dense", "tf_keras"), ("dense", "keras3")),
    *(("sparse", "legacy"), ("sparse", "tf_keras"), ("sparse", "keras3")),
)
RATE, BEFORE, AFTER, ROWS = 0.01, 20, 100, 10
BERT_RATE = RATE / 10  # without bias correction the first steps are several times as long
PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "checkpoint-training.md"

_RANDOM = np.random.default_rng(0)
IDS = _RANDOM.integers(0, ROWS, (BEFORE + AFTER, 4)).astype("i4")
FACTORS = _RANDOM.normal(size=(BEFORE + AFTER, 4, 3)).astype("f4")
TARGETS = (_RANDOM.normal(size=(ROWS, 3)).astype("f4")[IDS] * FACTORS).sum(-1, keepdims=True)
INITIAL = {
    f"{kind}_{name}": value
    for kind in ("dense", "sparse")
    for name, value in {
        "embeddings": _RANDOM.normal(size=(ROWS, 3)).astype("f4") * 0.3,
        "kernel": _RANDOM.normal(size=(3, 1)).astype("f4") * 0.3,
        "bias": np.zeros(1, "f4"),
    }.items()
}
Values = Mapping[str, Any]


class Case(NamedTuple):
    """An optimizer of TF1 and what Keras' is given to be the same."""

    make: Callable[[], Any]
    keras_class: str
    given: Mapping[str, Any]


CASES: Mapping[str, Case] = {
    "GradientDescent": Case(lambda: v1.train.GradientDescentOptimizer(RATE), "SGD", {}),
    "Momentum": Case(lambda: v1.train.MomentumOptimizer(RATE, 0.9), "SGD", {"momentum": 0.9}),
    "Nesterov": Case(
        lambda: v1.train.MomentumOptimizer(RATE, 0.9, use_nesterov=True), "SGD", {"momentum": 0.9, "nesterov": True}
    ),
    "Adagrad": Case(lambda: v1.train.AdagradOptimizer(RATE), "Adagrad", {"initial_accumulator_value": 0.1, "epsilon": 1e-30}),
    "Adam": Case(lambda: v1.train.AdamOptimizer(RATE), "Adam", {"epsilon": 1e-8}),
    "Adam with other betas": Case(
        lambda: v1.train.AdamOptimizer(RATE, 0.8, 0.95), "Adam", {"epsilon": 1e-8, "beta_1": 0.8, "beta_2": 0.95}
    ),
    "LazyAdam": Case(lambda: LazyAdam(RATE), "Adam", {"epsilon": 1e-8}),
    "AdaMax": Case(lambda: AdaMax(RATE), "Adamax", {"epsilon": 1e-8}),
    "AdamW": Case(lambda: AdamW(1e-3, RATE), "AdamW", {"epsilon": 1e-8, "weight_decay": 1e-3 / RATE}),
    "BERT's Adam": Case(
        lambda: BertAdam(BERT_RATE, 0.01), "AdamW", {"learning_rate": BERT_RATE, "epsilon": 1e-6, "weight_decay": 0.01}
    ),
    "BERT's LAMB": Case(lambda: Lamb(BERT_RATE), "Lamb", {"learning_rate": BERT_RATE, "epsilon": 1e-6}),
    "RMSProp": Case(lambda: v1.train.RMSPropOptimizer(RATE), "RMSprop", {"rho": 0.9, "epsilon": 1e-10}),
    "RMSProp with momentum": Case(
        lambda: v1.train.RMSPropOptimizer(RATE, momentum=0.5), "RMSprop", {"rho": 0.9, "momentum": 0.5, "epsilon": 1e-10}
    ),
    "centered RMSProp": Case(
        lambda: v1.train.RMSPropOptimizer(RATE, momentum=0.5, centered=True),
        "RMSprop",
        {"rho": 0.9, "momentum": 0.5, "epsilon": 1e-10, "centered": True},
    ),
    "Ftrl": Case(
        lambda: v1.train.FtrlOptimizer(RATE, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
        "Ftrl",
        {"initial_accumulator_value": 0.1, "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02},
    ),
    "Adadelta": Case(lambda: v1.train.AdadeltaOptimizer(RATE, 0.95, 1e-8), "Adadelta", {"rho": 0.95, "epsilon": 1e-8}),
}

# The differences that were measured before this test was written, with other weights and batches and dense gradients.
_ADAM: Mapping[Family, float] = {"legacy": 3.9e-7, "tf_keras": 4.4e-6, "keras3": 4.4e-6}
_RMSPROP: Mapping[Family, float] = {"legacy": 1.2e-7, "tf_keras": 1.2e-7, "keras3": 1.8e-7}
BEFORE_US: Mapping[str, Mapping[Family, float]] = {
    "GradientDescent": dict.fromkeys(FAMILIES, 0.0),
    "Momentum": dict.fromkeys(FAMILIES, 9e-7),
    "Nesterov": dict.fromkeys(FAMILIES, 2e-7),
    "Adagrad": dict.fromkeys(FAMILIES, 3e-8),
    "Adam": _ADAM,
    "Adam with other betas": _ADAM,
    "LazyAdam": _ADAM,
    "AdaMax": _ADAM,
    "AdamW": _ADAM,
    "BERT's Adam": dict.fromkeys(FAMILIES, 3.6e-7),
    "BERT's LAMB": dict.fromkeys(FAMILIES, 3.6e-7),
    "RMSProp": _RMSPROP,
    "RMSProp with momentum": _RMSPROP,
    "centered RMSProp": _RMSPROP,
    "Ftrl": dict.fromkeys(FAMILIES, 0.0),
    "Adadelta": {"legacy": 0.0, "tf_keras": 4e-10, "keras3": 4e-10},
}


def loss(values: Mapping[str, Any], step: Any, look_up: Callable[[Any, Any], Any]) -> Any:
    """Differences of both models at a step."""
    ids, factors, targets = (tf.gather(data, step) for data in (IDS, FACTORS, TARGETS))
    total = 0.0
    for kind in ("dense", "sparse"):
        table = values[f"{kind}_embeddings"]
        rows = look_up(table, ids) if kind == "sparse" else tf.matmul(tf.one_hot(ids, ROWS), tf.convert_to_tensor(table))
        predictions = tf.matmul(rows * factors, values[f"{kind}_kernel"]) + values[f"{kind}_bias"]
        total += tf.reduce_mean((predictions - targets) ** 2)
    return total


class Old:
    """A graph of TF1, and its session; the embeddings are partitioned where the optimizer knows of partitions."""

    def __init__(self, name: str) -> None:
        whole = issubclass(type(optimizer := CASES[name].make()), BertAdam)
        with tf.Graph().as_default() as graph:
            variables = {key: _variable(key, value, 1 if whole else 2) for key, value in INITIAL.items()}
            self._step = v1.placeholder(tf.int32, [])
            divided = functools.partial(v1.nn.embedding_lookup, partition_strategy="div")
            value = loss(variables, self._step, divided)
            self._global_step = v1.train.get_or_create_global_step()
            if whole:  # its slots are variables made anew, under names that a scope would change
                self._train = optimizer.apply_gradients(optimizer.compute_gradients(value), self._global_step)
            else:
                self._train = optimizer.minimize(value, self._global_step)
            self._values = {key: tf.convert_to_tensor(variable) for key, variable in variables.items()}
            self._saver = v1.train.Saver()
            self._initialize = v1.global_variables_initializer()
        self._session = v1.Session(graph=graph)

    def initialize(self) -> None:
        self._session.run(self._initialize)

    def run(self, first: int, last: int) -> Values:
        for step in range(first, last):
            self._session.run(self._train, {self._step: step})
        values: Values = self._session.run(self._values)
        return values

    def save(self, folder: Path) -> str:
        with self._session.graph.as_default():  # whose .meta file tells which gradients are sparse
            path: str = self._saver.save(self._session, str(folder / "model.ckpt"), global_step=BEFORE, write_state=False)
        return path

    def close(self) -> None:
        self._session.close()

    def restore(self, prefix: Path) -> None:
        with self._session.graph.as_default():
            self._saver.restore(self._session, str(prefix))
        assert self._session.run(self._global_step) == BEFORE


class New:
    """The same as Keras' side saves it: a tf.train.Checkpoint of variables and optimizer."""

    def __init__(self, keras_class: str, given: Mapping[str, Any], family: Family) -> None:
        self._optimizer = getattr(FAMILIES[family], keras_class)(**{"learning_rate": RATE, **given})
        make = keras.Variable if family == "keras3" else tf.Variable
        self._variables = {key: make(value, name=key) for key, value in INITIAL.items()}
        build = self._optimizer._create_all_weights if family == "legacy" else self._optimizer.build
        build(list(self._variables.values()))
        self.checkpoint = tf.train.Checkpoint(model=tf.train.Checkpoint(**self._variables), optimizer=self._optimizer)
        self._train = tf.function(self._loop)

    def run(self, first: int, last: int) -> Values:
        self._train(tf.constant(first), tf.constant(last))
        return {key: variable.numpy() for key, variable in self._variables.items()}

    def correct_no_bias(self) -> None:
        self._optimizer.iterations.assign(ITERATIONS)

    def _loop(self, first: Any, last: Any) -> None:
        values = {key: getattr(variable, "_value", variable) for key, variable in self._variables.items()}
        for step in tf.range(first, last):
            with tf.GradientTape() as tape:
                value = loss(values, step, tf.gather)
            gradients = tape.gradient(value, list(values.values()))
            self._optimizer.apply_gradients(zip(gradients, self._variables.values(), strict=True))


@dataclasses.dataclass(frozen=True)
class Measured:
    """One optimizer in one family; differences are the largest of any weight, and of both directions.

    Attributes:
        differences: "dense" and "sparse" -> abs_diff.
        limits: "dense" and "sparse" -> at most so much is close.
        restored: the same of TF1 going on from the converted files.
        forward: report of the conversion to Keras.
        backward: and of that to TF1.
    """

    differences: Mapping[str, float]
    limits: Mapping[str, float]
    restored: float
    forward: ConversionReport
    backward: ConversionReport

    def close(self, kind: str) -> bool:
        return self.differences[kind] <= self.limits[kind]


def families(name: str) -> list[Family]:
    """The families that have an optimizer's counterpart."""
    return [family for family, optimizers in FAMILIES.items() if hasattr(optimizers, CASES[name].keras_class)]


class Proof:
    """Measures, each thing once; the TF1 side of an optimizer is trained once for all families."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._measured: dict[tuple[str, Family], Measured] = {}
        self._old: dict[str, tuple[Old, str, Values]] = {}

    def measure(self, name: str, family: Family) -> Measured:
        if (name, family) not in self._measured:
            self._measured[name, family] = self._measure(name, family)
        return self._measured[name, family]

    def _measure(self, name: str, family: Family) -> Measured:
        old, saved, reference = self.trained(name)
        folder = self._folder / f"{name}-{family}"
        new = New(CASES[name].keras_class, CASES[name].given, family)
        like = new.checkpoint.write(str(folder / "like" / "ckpt"))
        forward = convert(saved, folder / "forward" / "model.ckpt-20", like=like)
        new.checkpoint.read(str(folder / "forward" / "model.ckpt-20")).assert_consumed()
        there = difference(reference, new.run(BEFORE, BEFORE + AFTER))
        old.restore(folder / "forward" / "model.ckpt-20")
        restored = difference(reference, old.run(BEFORE, BEFORE + AFTER))

        new.checkpoint.read(like).assert_consumed()
        if name.startswith("BERT's"):
            new.correct_no_bias()
        new.run(0, BEFORE)
        written = new.checkpoint.write(str(folder / "new" / "ckpt"))
        uninterrupted = new.run(BEFORE, BEFORE + AFTER)
        backward = convert(written, folder / "backward" / "model.ckpt-20", to="name-based", like=saved)
        old.restore(folder / "backward" / "model.ckpt-20")
        back = difference(uninterrupted, old.run(BEFORE, BEFORE + AFTER))
        worst = {kind: max(there[kind], back[kind]) for kind in there}
        limits = _limits(BEFORE_US[name][family], [*reference.values(), *uninterrupted.values()])
        return Measured(worst, limits, max(restored.values()), forward, backward)

    def close(self) -> None:
        """Ends the sessions."""
        for old, _, _ in self._old.values():
            old.close()

    def trained(self, name: str) -> tuple[Old, str, Values]:
        if name not in self._old:
            old = Old(name)
            old.initialize()
            old.run(0, BEFORE)
            saved = old.save(self._folder / name)
            self._old[name] = old, saved, old.run(BEFORE, BEFORE + AFTER)
        return self._old[name]


def _limits(before: float, weights: list[Any]) -> dict[str, float]:
    """Exact values stay exact with dense gradients; otherwise 100 roundings of half a unit in the last place may add up to eight."""
    noise = 8 * float(np.spacing(np.float32(max(np.abs(weight).max() for weight in weights))))
    return {"dense": max(before, noise) if before else 0.0, "sparse": max(before, noise)}


def difference(one: Values, other: Values) -> dict[str, float]:
    """ "dense" and "sparse" -> the largest difference of any weight."""
    return {
        kind: max(float(np.abs(one[key] - other[key]).max()) for key in keys)
        for kind, keys in ((kind, list(keys)) for kind, keys in itertools.groupby(one, lambda key: key.partition("_")[0]))
    }


def _variable(key: str, value: Any, num_shards: int) -> Any:
    def initializer(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        start = partition_info.var_offset[0] if partition_info else 0
        return tf.constant(value[start : start + shape[0]], dtype)

    partitioner = v1.fixed_size_partitioner(num_shards) if key.endswith("embeddings") and num_shards > 1 else None
    return v1.get_variable(key, value.shape, initializer=initializer, partitioner=partitioner, use_resource=True)


_HEAD = """% Written by python -m tests.compat.checkpoint.conversion.training_proof from what it measures; tests keep it in step.
# Accuracy of training after a conversion

For anyone who wants to know whether an optimizer trains on as before when its checkpoint is converted.

```sh
estimator-bridge convert checkpoint old/model.ckpt-20 new/model.ckpt-20 --like model.keras
```

Each optimizer of TensorFlow 1 trains 20 steps, its checkpoint is converted, and Keras' optimizer trains 100 steps more; then the same
from Keras to TensorFlow 1. Each figure is the largest difference of any weight from 120 uninterrupted steps, and the larger one of
both directions. The learning rate is 0.01, for BERT's optimizers 0.001; the weights end between 0.4 and 1.8.

*Dense* is a model whose table is multiplied with one-hot rows. *Sparse* is the same model with an embedding look-up into a partitioned
table, with ids that repeat in a batch. **Bold**: with sparse gradients this optimizer of Keras computes something else than TF1's,
whatever state it starts from; the conversion says so, and names the variables. The others differ only by rounding. An empty cell: the
family has no such class, and the conversion says that.

In each case TensorFlow 1 also goes on from the converted, bilingual checkpoint: always with a difference of exactly 0.

| TF1 | Keras | legacy, dense | tf_keras, dense | Keras 3, dense | legacy, sparse | tf_keras, sparse | Keras 3, sparse |
|---|---|---|---|---|---|---|---|
"""


def page(proof: Proof) -> str:
    """The page, with what is measured now."""
    lines = []
    for name, case in CASES.items():
        cells = [_cell(proof, name, family, kind) for kind, family in COLUMNS]
        lines.append(f"| {name} | {case.keras_class} | {' | '.join(cells)} |\n")
    return _HEAD + "".join(lines)


def _cell(proof: Proof, name: str, family: Family, kind: str) -> str:
    if family not in families(name):
        return ""
    measured = proof.measure(name, family)
    digits, _, exponent = f"{measured.differences[kind]:.1e}".partition("e")
    text = f"{digits}e{int(exponent)}" if measured.differences[kind] else "0"
    return text if measured.close(kind) else f"**{text}**"


def rows(text: str) -> dict[str, list[str]]:
    """Optimizer -> the cells of its row, of a page."""
    table = [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {cells[0]: cells[1:] for cells in table[1:]}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(Proof(Path(folder))), encoding="utf-8")
