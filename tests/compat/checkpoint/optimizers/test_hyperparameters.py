"""Betas on the way to TF1: from the configuration in a SavedModel, and from the old graph's powers; a default is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint import convert, read_index
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.models.object_graph import read_object_model
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE
from estimator_bridge.compat.checkpoint.optimizers.hyperparameters import hyperparameters
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from tests.cli.convert.test_checkpoint import write_keras_side
from tests.compat.checkpoint import tensorflow_side

OLD = {"dense/kernel": [[0.0]], "dense/kernel/Adam": [[0.0]], "dense/kernel/Adam_1": [[0.0]], "global_step": 0}


@pytest.fixture(scope="module")
def trained() -> Any:
    """A model of the newer family after three updates, whose checkpoints keep no betas."""
    model = tf_keras.Sequential([tf_keras.layers.Dense(1, use_bias=False, name="dense", input_shape=(1,))])
    model.compile(tf_keras.optimizers.Adam(0.01, beta_1=0.8, beta_2=0.95), "mse")
    model.fit(np.ones((3, 1)), np.ones((3, 1)), batch_size=1, verbose=0)
    return model


def powers(prefix: Path) -> list[float]:
    saved = tensorflow_side.load(prefix)
    return [float(saved[name]) for name in ("beta1_power", "beta2_power")]


def test_betas_from_a_saved_model(trained: Any, tmp_path: Path) -> None:
    trained.save(tmp_path / "saved", save_format="tf")
    model = read_object_model(read_index(tmp_path / "saved"))
    known = hyperparameters(model)
    assert (known["beta_1"], known["beta_2"], known["epsilon"]) == (0.8, 0.95, 1e-7)
    report = convert(tmp_path / "saved", tmp_path / "m", to="name-based", allow_unmatched=True)
    assert powers(tmp_path / "m") == pytest.approx([0.8**4, 0.95**4])
    assert "assumed" not in "".join(report.warnings)


def test_betas_from_the_old_graph(trained: Any, tmp_path: Path) -> None:
    saved = tf.train.Checkpoint(model=trained, optimizer=trained.optimizer).write(str(tmp_path / "ckpt"))
    like = write_tensors(tmp_path / "old", {**OLD, "beta1_power": 0.8, "beta2_power": 0.95})
    report = convert(saved, tmp_path / "m", to="name-based", like=like)
    assert powers(tmp_path / "m") == pytest.approx([0.8**4, 0.95**4])
    assert "assumed" not in "".join(report.warnings)


def test_a_default_is_reported_by_name(trained: Any, tmp_path: Path) -> None:
    saved = tf.train.Checkpoint(model=trained, optimizer=trained.optimizer).write(str(tmp_path / "ckpt"))
    report = convert(saved, tmp_path / "m", to="name-based")
    assert powers(tmp_path / "m") == pytest.approx([0.9**4, 0.999**4])
    assumed = [warning for warning in report.warnings if "assumed" in warning]
    assert ["beta_1; 0.9 is assumed" in warning for warning in assumed] == [True, False]
    assert ["beta_2; 0.999 is assumed" in warning for warning in assumed] == [False, True]


@pytest.mark.parametrize("data", [b"", b"\x0a\x05\x2a\x03{,}", b"\xff" * 9])
def test_damaged_metadata_are_as_none(trained: Any, tmp_path: Path, data: bytes) -> None:
    trained.save(tmp_path / "saved", save_format="tf")
    (tmp_path / "saved" / "keras_metadata.pb").write_bytes(data)
    assert "beta_1" not in hyperparameters(read_object_model(read_index(tmp_path / "saved")))


@pytest.mark.parametrize(("given", "rate"), [(None, 0.3), (0.7, 0.7)])
def test_a_learning_rate_in_float64(given: float | None, rate: float, tmp_path: Path) -> None:
    """Keras keeps it so after ``set_floatx("float64")``."""
    kernel = np.full((3, 2), 10.0, np.float32)
    old = {"dense/kernel": kernel, "dense/kernel/Momentum": kernel, "dense/bias": [1.0, 1.0], "dense/bias/Momentum": [1.0, 1.0]}
    like = write_keras_side(tmp_path / "keras" / "m", np.array(0.3))
    assert convert(
        write_tensors(tmp_path / "old" / "m", {**old, "global_step": 1}), tmp_path / "m", like=like, learning_rate=given
    ).written
    read = tf.train.load_checkpoint(str(tmp_path / "m")).get_tensor
    assert read(f"optimizer/learning_rate{ATTRIBUTE}") == rate
    np.testing.assert_array_equal(
        read(f"model/kernel/.OPTIMIZER_SLOT/optimizer/momentum{ATTRIBUTE}"), kernel * np.float32(-rate)
    )


def test_a_learning_rate_that_nothing_is_scaled_by_is_refused(tmp_path: Path) -> None:
    old = write_tensors(tmp_path / "old" / "m", {"w": [1.0], "w/Momentum": [0.5], "global_step": 1})
    with pytest.raises(UnsupportedError, match="--learning-rate has no effect"):
        convert(old, tmp_path / "new" / "m", learning_rate=0.1)
    assert not (tmp_path / "new").exists()
