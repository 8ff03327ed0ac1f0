"""Checkpoints that real TensorFlow 1.15.5 and native 2.15.1 wrote: make_checkpoints.py and make_checkpoints_native.py there."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint import convert, read_index
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.inspection.difference import differences
from estimator_bridge.compat.checkpoint.inspection.summary import summarize, verify_all
from estimator_bridge.compat.checkpoint.names.naming import canned_hyperparameter
from estimator_bridge.compat.checkpoint.writing.opening import open_checkpoint
from tests.compat.checkpoint import tensorflow_side

GOLDEN = Path(__file__).parents[2] / "golden" / "checkpoints"
NATIVE = GOLDEN.with_name("checkpoints-native")


@pytest.mark.parametrize("name", ["v1.ckpt", "v1-sharded.ckpt"])
def test_v1_has_the_values_of_v2(name: str) -> None:
    with open_checkpoint(GOLDEN / name) as index:
        rows = list(differences(index, read_index(GOLDEN / "v2.ckpt")))
        assert len(rows) == 14
        assert all(row.within(0.0) for row in rows)
        assert len(index.pieces["partitioned"]) == 3


@pytest.mark.parametrize("latest", ["v1.ckpt", "/elsewhere/v1.ckpt", "v1-sharded.ckpt-?????-of-00003"])
def test_v1_is_the_latest_of_a_model_dir(latest: str, tmp_path: Path) -> None:
    """TensorFlow's Saver writes such a name into the file ``checkpoint``."""
    for file in GOLDEN.glob("v1*.ckpt*"):
        shutil.copy(file, tmp_path)
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{latest}"\n')
    with open_checkpoint(tmp_path) as index:
        assert index.entries.keys() == read_index(GOLDEN / "v2.ckpt").entries.keys()
        assert summarize(index, str(tmp_path)).kind == "name-based, in V1's format"
    with pytest.raises(UnsupportedError, match=r"V1's format[^$]*convert checkpoint [^$]*/v1\S*.ckpt TARGET"):
        read_index(tmp_path)


@pytest.mark.parametrize("name", ["v1.ckpt", "v1-sharded.ckpt"])
def test_v1_is_converted(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="V1's format"):
        read_index(GOLDEN / name)
    convert(GOLDEN / name, tmp_path / "m", to="name-based", rename=[("^of_", "kind/")])
    old, new = tensorflow_side.load(GOLDEN / "v2.ckpt"), tensorflow_side.load(tmp_path / "m")
    assert all(tensorflow_side.same_bytes(new[name.replace("of_", "kind/")], value) for name, value in old.items())


@pytest.mark.parametrize(
    ("path", "optimizers"),
    [
        (GOLDEN / "dnn.ckpt-2", {"Adagrad"}),
        (GOLDEN / "linear.ckpt-2", {"Ftrl"}),
        (GOLDEN / "combined.ckpt-2", {"Adagrad", "Ftrl"}),
        (GOLDEN / "partitioned.ckpt-2", {"Adam"}),
        (NATIVE / "v1-dnn.ckpt-2", {"Adagrad"}),
        (NATIVE / "v1-linear.ckpt-2", {"Ftrl"}),
        (NATIVE / "v1-combined.ckpt-2", {"Adagrad", "Ftrl"}),
        (NATIVE / "v2-dnn.ckpt-2", {"Adam"}),
        (NATIVE / "v2-linear.ckpt-2", {"Ftrl"}),
        (NATIVE / "v2-combined.ckpt-2", {"Adagrad", "Ftrl"}),
        (NATIVE / "partitioned.ckpt-2", {"Momentum"}),
        (NATIVE / "v1-linear-cut.ckpt-2", {"Ftrl"}),
        (NATIVE / "v2-multi.ckpt-2", {"Adam"}),
        (NATIVE / "two-optimizers.ckpt-2", {"Adam"}),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else None,
)
def test_every_slot_is_recognised(path: Path, optimizers: set[str]) -> None:
    index = read_index(path)
    assert verify_all(index).unchecked == ()
    summary = summarize(index)
    assert (summary.step, summary.kind) == (2, "name-based")
    assert set(summary.optimizers()) == optimizers
    slots = [variable for variable in summary.variables if variable.slot]
    others = [v for v in summary.variables if not v.slot and canned_hyperparameter(v.name) is None]
    assert len(slots) > len(optimizers)
    assert all(last not in variable.name for variable in others for last in ("Adagrad", "Ftrl", "Adam"))
    shapes = {variable.name: variable.shape for variable in summary.variables}
    assert all(variable.slot and shapes[variable.slot.variable] == variable.shape for variable in slots)


@pytest.mark.parametrize("folder", [GOLDEN, NATIVE])
def test_variables_of_two_parameter_servers_made_whole(folder: Path, tmp_path: Path) -> None:
    convert(folder / "partitioned.ckpt-2", tmp_path / "m", to="name-based", partition=[("embedding/table", 1)])
    index = read_index(tmp_path / "m")
    assert index.pieces == {}
    old, new = tensorflow_side.load(folder / "partitioned.ckpt-2"), tensorflow_side.load(tmp_path / "m")
    assert all(tensorflow_side.same_bytes(new[name], value) for name, value in old.items())


def keras_side(
    old: dict[str, Any], slots: Collection[str], optimizer: Any
) -> tuple[tf.train.Checkpoint, dict[str, tf.Variable]]:
    """Variables of the same names and shapes, untrained, under an optimizer of the legacy family."""
    names = [name for name in old if name not in slots and not name.startswith(("training", "global_step"))]
    variables = {name: tf.Variable(tf.zeros(old[name].shape), name=name) for name in names}
    optimizer._create_all_weights(list(variables.values()))
    model = tf.train.Checkpoint(**{name.replace("/", "_"): variable for name, variable in variables.items()})
    return tf.train.Checkpoint(model=model, optimizer=optimizer), variables


def test_parameter_servers_of_the_native_estimator_to_keras(tmp_path: Path) -> None:
    old = tensorflow_side.load(NATIVE / "partitioned.ckpt-2")
    optimizer = tf_keras.optimizers.legacy.SGD(0.5, momentum=0.9)
    keras, variables = keras_side(old, [name for name in old if name.endswith("/Momentum")], optimizer)
    convert(NATIVE / "partitioned.ckpt-2", tmp_path / "m", like=keras.save(str(tmp_path / "like")))
    keras.restore(str(tmp_path / "m")).assert_consumed()
    assert set(variables) == {"embedding/table", "dense/kernel"}
    for name, variable in variables.items():
        np.testing.assert_array_equal(variable.numpy(), old[name])
        np.testing.assert_array_equal(
            optimizer.get_slot(variable, "momentum").numpy(), np.float32(-0.5) * old[f"{name}/Momentum"]
        )
    assert np.abs(old["embedding/table/Momentum"]).max() > 0
    assert optimizer.iterations.numpy() == 2


@pytest.mark.parametrize(
    ("name", "scope", "count", "beta_1"), [("v2-dnn", "training", 5, 0.8), ("v2-multi", "training_2", 4, 0.9)]
)
def test_a_canned_estimator_of_tensorflow_2_to_keras(name: str, scope: str, count: int, beta_1: float, tmp_path: Path) -> None:
    """Its optimizer is of the legacy family already: slots and hyperparameters come over as they are."""
    source = NATIVE / f"{name}.ckpt-2"
    old = tensorflow_side.load(source)
    optimizer = tf_keras.optimizers.legacy.Adam(0.5, beta_1=0.5)
    keras, variables = keras_side(old, (), optimizer)
    report = convert(source, tmp_path / "m", like=keras.save(str(tmp_path / "like")))
    keras.restore(str(tmp_path / "m")).assert_consumed()
    assert (len(variables), report.warnings) == (count, [])
    for name, variable in variables.items():
        for slot in ("m", "v"):
            np.testing.assert_array_equal(optimizer.get_slot(variable, slot).numpy(), old[f"{scope}/Adam/{name}/{slot}"])
    kept = [optimizer._get_hyper(name).numpy() for name in ("beta_1", "beta_2", "learning_rate")]
    assert kept == [np.float32(beta_1), np.float32(0.999), np.float32(0.001)]
    assert optimizer.iterations.numpy() == 2


CUT = NATIVE / "v1-linear-cut.ckpt-2"
WEIGHTS, BIAS = "linear/linear_model/x/weights", "linear/linear_model/bias_weights"
SLICES = {0: "3 1 0,2:0,1", 1: "3 1 2,1:0,1"}  # as the partitioner of the graph asks for them


def slots_of_slices(prefix: Path) -> dict[str, Any]:
    """Slots are read slice by slice, as TensorFlow restores them: it cannot read one of these slots as a whole."""
    names = {f"{WEIGHTS}/part_{part}/{slot}": spec for part, spec in SLICES.items() for slot in ("Ftrl", "Ftrl_1")}
    found = tensorflow_side.restore(prefix, list(names), list(names.values()), [tf.float32] * len(names))
    return dict(zip(names, found, strict=True))


def linear_side() -> tuple[tf.train.Checkpoint, tf.Variable, Any]:
    weights, bias = tf.Variable(tf.zeros([3, 1]), name=WEIGHTS), tf.Variable(tf.zeros([1]), name=BIAS)
    optimizer = tf_keras.optimizers.legacy.Ftrl(0.2)
    optimizer._create_all_weights([weights, bias])
    return tf.train.Checkpoint(model=tf.train.Checkpoint(weights=weights, bias=bias), optimizer=optimizer), weights, optimizer


def test_a_linear_estimator_with_a_partitioner_to_keras(tmp_path: Path) -> None:
    """Its optimizer keeps a slot for each slice, under a name of its own."""
    old = slots_of_slices(CUT)
    keras, weights, optimizer = linear_side()
    report = convert(CUT, tmp_path / "m", like=keras.save(str(tmp_path / "like")))
    keras.restore(str(tmp_path / "m")).assert_consumed()
    assert report.complete
    assert all(slot.target for slot in report.slots)
    for slot, name in (("accumulator", "Ftrl"), ("linear", "Ftrl_1")):
        parts = [old[f"{WEIGHTS}/part_{part}/{name}"] for part in SLICES]
        np.testing.assert_array_equal(optimizer.get_slot(weights, slot).numpy(), np.concatenate(parts))
    new = slots_of_slices(tmp_path / "m")  # what the old graph restores is there as before
    assert all(tensorflow_side.same_bytes(new[name], value) for name, value in old.items())


def test_keras_to_a_linear_estimator_with_a_partitioner(tmp_path: Path) -> None:
    keras, weights, optimizer = linear_side()
    values = {slot: np.float32([[1.0], [2.0], [3.0]]) + number for number, slot in enumerate(("accumulator", "linear"))}
    for slot, value in values.items():
        optimizer.get_slot(weights, slot).assign(value)
    assert convert(keras.save(str(tmp_path / "k")), tmp_path / "m", to="name-based", like=CUT).complete
    new = slots_of_slices(tmp_path / "m")
    for slot, name in (("accumulator", "Ftrl"), ("linear", "Ftrl_1")):
        parts = [new[f"{WEIGHTS}/part_{part}/{name}"] for part in SLICES]
        np.testing.assert_array_equal(np.concatenate(parts), values[slot])


def test_slots_of_slices_are_cut_as_their_variable(tmp_path: Path) -> None:
    convert(CUT, tmp_path / "m", to="name-based", partition=[(WEIGHTS, 1)])
    old, new = slots_of_slices(CUT), slots_of_slices(tmp_path / "m")
    assert read_index(tmp_path / "m").pieces == {}
    assert all(tensorflow_side.same_bytes(new[name], value) for name, value in old.items())


def test_keras_to_a_canned_estimator_of_tensorflow_2(tmp_path: Path) -> None:
    old = tensorflow_side.load(NATIVE / "v2-dnn.ckpt-2")
    optimizer = tf_keras.optimizers.legacy.Adam(0.5, beta_1=0.7)
    keras, variables = keras_side(old, (), optimizer)
    optimizer.apply_gradients([(tf.ones_like(variable), variable) for variable in variables.values()])
    report = convert(keras.save(str(tmp_path / "k")), tmp_path / "m", to="name-based", like=NATIVE / "v2-dnn.ckpt-2")
    new = tensorflow_side.load(tmp_path / "m")
    assert report.complete
    assert new.keys() == old.keys()
    assert (new["global_step"], new["training/Adam/beta_1"]) == (1, np.float32(0.7))
    for name, variable in variables.items():
        np.testing.assert_array_equal(new[name], variable.numpy())
        np.testing.assert_array_equal(new[f"training/Adam/{name}/m"], optimizer.get_slot(variable, "m").numpy())


# By hand from Keras 2.15's layout: what each name of TF1's is called there.
LEGACY_KEYS = {
    f"{variable}{suffix}": f"model/{path}{slot}"
    for variable, path in [
        ("embedding/embeddings", "layer_with_weights-0/embeddings"),
        ("dense/bias", "layer_with_weights-1/bias"),
    ]
    for suffix, slot in [("", ""), ("/Adam", "/.OPTIMIZER_SLOT/optimizer/m"), ("/Adam_1", "/.OPTIMIZER_SLOT/optimizer/v")]
}
NEW_KEYS = {
    "embedding_1/embeddings": "model/layer_with_weights-0/embeddings",
    "dense_1/bias": "model/layer_with_weights-1/bias",
    "embedding_1/embeddings/Adam": "optimizer/_variables/1",
    "embedding_1/embeddings/Adam_1": "optimizer/_variables/2",
    "dense_1/bias/Adam": "optimizer/_variables/5",
    "dense_1/bias/Adam_1": "optimizer/_variables/6",
}


@pytest.mark.parametrize(("name", "keys", "said"), [("keras-legacy-1", LEGACY_KEYS, 0), ("keras-new-1", NEW_KEYS, 2)])
def test_keras_2_15_to_the_names_of_tensorflow_1(name: str, keys: dict[str, str], said: int, tmp_path: Path) -> None:
    report = convert(NATIVE / name, tmp_path / "m", to="name-based")
    old, new = tensorflow_side.load(NATIVE / name), tensorflow_side.load(tmp_path / "m")
    assert len(new) == 3 * 3 + 3  # variables and their slots, step and powers
    for name_based, key in keys.items():
        np.testing.assert_array_equal(new[name_based], old[f"{key}/.ATTRIBUTES/VARIABLE_VALUE"])
    assert new["global_step"] == 2
    assert [new["beta1_power"], new["beta2_power"]] == pytest.approx([0.9**3, 0.999**3], rel=1e-6)
    assert sum("is assumed" in warning for warning in report.warnings) == said  # the newer family does not keep its betas
