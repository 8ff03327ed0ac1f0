"""The slot tables are complete: every slot that any optimizer of TensorFlow 1 makes is in one, or is said to have no counterpart.

The optimizers of this TensorFlow are made here; those of TensorFlow 1.15.5, tf.contrib's among them, made a golden checkpoint.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint import convert, read_index
from estimator_bridge.compat.checkpoint.models.object_graph import read_object_model
from estimator_bridge.compat.checkpoint.names.naming import canned_hyperparameter
from estimator_bridge.compat.checkpoint.optimizers.state import beta_powers, source_slots
from estimator_bridge.compat.checkpoint.slots import NO_COUNTERPART, TABLES, table_of_slots
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from tests.compat.checkpoint import tensorflow_side

v1 = tf.compat.v1
GOLDEN = Path(__file__).parents[2] / "golden"
ABSTRACT = {"Optimizer", "SyncReplicasOptimizer"}  # the second one wraps another
OPTIMIZERS = sorted(
    name
    for name, value in vars(v1.train).items()
    if inspect.isclass(value) and issubclass(value, v1.train.Optimizer) and name not in ABSTRACT
)


def make(name: str, **given: Any) -> Any:
    """An optimizer with whatever it insists on."""
    step = {"global_step": v1.train.get_or_create_global_step()} if name == "AdagradDAOptimizer" else {}
    return getattr(v1.train, name)(0.1, **step, **given)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, {}) for name in OPTIMIZERS),
        ("RMSPropOptimizer", {"centered": True}),
        ("MomentumOptimizer", {"use_nesterov": True}),
    ],
)
def test_every_slot_has_a_row(name: str, given: dict[str, Any], sparse: bool) -> None:
    if name == "MomentumOptimizer":
        given = {"momentum": 0.9, **given}
    with tf.Graph().as_default():
        variable = v1.get_variable("scope/w", [5, 2])
        loss = tf.reduce_sum(tf.gather(variable, [1, 3]) if sparse else variable**2)
        make(name, **given).minimize(loss)
        names = {variable.op.name for variable in v1.global_variables()}
    check(names, {"scope/w"})
    kinds = {slot.optimizer for slot in source_slots(names)}
    assert len(kinds) <= 1
    for table in filter(None, map(TABLES.get, kinds)):
        assert {row.suffix for row in table.rows} == {slot.name.rpartition("/")[2] for slot in source_slots(names)}


def check(names: Collection[str], variables: Collection[str]) -> None:
    """Each name is a variable, a slot that has a row or of an optimizer said to have no counterpart, or counts updates."""
    found = source_slots(names)
    counts = {"global_step", *beta_powers(names)}
    assert {slot.name for slot in found} == set(names) - set(variables) - counts
    for slot in found:
        assert slot.variable in variables
        assert (slot.row is None) == (slot.optimizer in NO_COUNTERPART), slot
        assert (slot.row is not None) == (slot.optimizer in TABLES), slot


# Whose slots each optimizer's are by their names; None for one without any.
IN_1_15 = {
    **{name: name for name in ("AdaMax", "Adadelta", "Adagrad", "AdagradDA", "Adam", "AdamW", "AddSign", "Ftrl", "LARS")},
    **{name: name for name in ("Momentum", "MomentumW", "PowerSign", "ProximalAdagrad", "RMSProp", "RegAdagrad", "Shampoo")},
    "LazyAdam": "Adam",
    "Nadam": "Adam",
    "Nesterov": "Momentum",
    "RMSPropCentered": "centered RMSProp",
    "GradientDescent": None,
    "ProximalGradientDescent": None,
}


def test_every_slot_of_tensorflow_1_15_has_a_row() -> None:
    names = set(read_index(GOLDEN / "checkpoints" / "optimizers.ckpt-0").entries)
    variables = {name for name in names if name.endswith(("/dense", "/sparse"))}
    check(names, variables)
    owners = {variable.partition("/")[0]: None for variable in variables} | {
        slot.variable.partition("/")[0]: slot.optimizer for slot in source_slots(names)
    }
    assert owners == IN_1_15


def is_variable(name: str) -> bool:
    return name.rpartition("/")[2] in {"kernel", "bias", "weights", "bias_weights", "embedding_weights", "table"}


@pytest.mark.parametrize(
    "name",
    [
        *("v1-dnn", "v1-linear", "v1-combined", "v2-dnn", "v2-linear", "v2-combined", "partitioned"),
        *("v2-multi", "two-optimizers", "v1-linear-cut"),
    ],
)
def test_every_slot_of_the_native_estimator_has_a_row(name: str) -> None:
    names = set(read_index(GOLDEN / "checkpoints-native" / f"{name}.ckpt-2").entries)
    canned = {name for name in names if canned_hyperparameter(name)}
    check(names - canned, {name for name in names - canned if is_variable(name)})


def legacy_slots(table_name: str, **given: Any) -> set[str]:
    optimizer = getattr(tf_keras.optimizers.legacy, TABLES[table_name].keras_class)(**given)
    optimizer._create_all_weights([tf.Variable([1.0])])
    return set(optimizer.get_slot_names())


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Momentum", {"momentum": 0.9}),
        ("Adagrad", {}),
        ("Adam", {}),
        ("RMSProp", {"momentum": 0.5}),
        ("centered RMSProp", {"momentum": 0.5, "centered": True}),
        ("Ftrl", {}),
        ("Adadelta", {}),
        ("AdaMax", {}),
    ],
)
def test_every_slot_of_keras_has_a_row(name: str, given: dict[str, Any]) -> None:
    assert legacy_slots(name, **given) == {row.legacy for row in TABLES[name].rows}


NEWER = [("Momentum", {"momentum": 0.9}), ("Adagrad", {}), ("Adam", {}), ("AdaMax", {}), ("Ftrl", {}), ("Adadelta", {})]
NEWER += [("AdamW", {}), ("RMSProp", {"momentum": 0.5}), ("centered RMSProp", {"momentum": 0.5, "centered": True})]


@pytest.mark.parametrize(("name", "given"), NEWER)
def test_every_slot_of_newer_keras_has_a_row(name: str, given: dict[str, Any], tmp_path: Path) -> None:
    """Slots of a Keras optimizer as its checkpoint shows them, where a conversion finds them."""
    optimizer = getattr(tf_keras.optimizers, TABLES[name].keras_class)(**given)
    variable = tf.Variable([1.0], name="w")
    optimizer.build([variable])
    saved = tf.train.Checkpoint(w=variable, optimizer=optimizer).write(str(tmp_path / "ckpt"))
    model = read_object_model(read_index(saved))
    assert {slot.slot for slot in model.slots} == {row.keras for row in TABLES[name].rows}
    assert table_of_slots([slot.slot for slot in model.slots]) == ("Adam" if name == "AdamW" else name)


CENTERED = {
    "rms": ("RMSProp", "_velocities"),
    "mg": ("RMSProp_1", "_average_gradients"),
    "momentum": ("RMSProp_2", "_momentums"),
}
"""Slots of centered RMSProp: TF1's own name -> suffix in a TF1 checkpoint, list of a newer Keras optimizer."""


def test_tensorflow_1_gives_centered_rmsprop_these_suffixes() -> None:
    with tf.Graph().as_default():
        variable = v1.get_variable("w", [2])
        optimizer = v1.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True)
        optimizer.minimize(tf.reduce_sum(variable**2))
        names = {slot: optimizer.get_slot(variable, slot).op.name for slot in optimizer.get_slot_names()}
    assert names == {slot: f"w/{suffix}" for slot, (suffix, _) in CENTERED.items()}


@pytest.mark.parametrize("family", ["legacy", "tf_keras", pytest.param("keras3", marks=pytest.mark.tf221)])
def test_each_slot_of_centered_rmsprop_keeps_its_value(family: str, tmp_path: Path) -> None:
    """Two slots that change places, or one that is dropped, would have the shape of the right one."""
    import keras

    modules = {"legacy": tf_keras.optimizers.legacy, "tf_keras": tf_keras.optimizers, "keras3": keras.optimizers}
    optimizer = modules[family].RMSprop(0.1, momentum=0.5, centered=True)
    variable = (keras.Variable if family == "keras3" else tf.Variable)([0.0, 0.0], name="w")
    (optimizer._create_all_weights if family == "legacy" else optimizer.build)([variable])
    checkpoint = tf.train.Checkpoint(model=tf.train.Checkpoint(w=variable), optimizer=optimizer)
    values = {slot: [number + 0.25, number + 0.5] for number, slot in enumerate(CENTERED, 1)}
    old = {f"w/{CENTERED[slot][0]}": value for slot, value in values.items()} | {"w": [8.0, 9.0], "global_step": 3}
    source = write_tensors(tmp_path / "old" / "m", old)
    assert convert(source, tmp_path / "m", like=checkpoint.write(str(tmp_path / "like"))).written
    checkpoint.read(str(tmp_path / "m")).assert_consumed()
    for slot, (_, name) in CENTERED.items():
        found = optimizer.get_slot(variable, slot) if family == "legacy" else getattr(optimizer, name)[0]
        assert found.numpy().tolist() == values[slot], slot
    saved = checkpoint.write(str(tmp_path / "keras"))
    for number, like in enumerate((source, None)):
        assert convert(saved, tmp_path / "back" / str(number), to="name-based", like=like).written
        back = tensorflow_side.load(tmp_path / "back" / str(number))
        assert {name: value.tolist() for name, value in back.items()} == old


def test_each_slot_that_a_canned_estimator_keeps_for_centered_rmsprop_has_its_row() -> None:
    names = {"w", *(f"training/RMSprop/w/{slot}" for slot in CENTERED)}
    found = {slot.name.rpartition("/")[2]: slot.row and (slot.row.suffix, f"_{slot.row.keras}") for slot in source_slots(names)}
    assert found == CENTERED
