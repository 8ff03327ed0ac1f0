"""The statistics of batch normalization, as tf.layers and tf.contrib name it, in Keras and back: tests/golden/make_statistics.py."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.compat.checkpoint import convert
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from tests.compat.checkpoint import tensorflow_side

GOLDEN = Path(__file__).parents[3] / "golden" / "statistics"


def network(library: Any, source: str) -> Any:
    """Three layers of one size; tf.contrib's have neither gamma nor bias."""
    layers = library.layers
    found = [layers.InputLayer((4,))]
    contrib = source == "contrib"
    for number in range(3):
        names = (f"fc{number}", f"norm{number}") if contrib else (None, None)
        found.append(layers.Dense(4, use_bias=not contrib, name=names[0]))
        found.append(layers.BatchNormalization(scale=not contrib, name=names[1]))
    return library.Sequential([*found, layers.Dense(1, name="out")])


@pytest.mark.parametrize("library", ["tf_keras", "keras"])
@pytest.mark.parametrize("source", ["layers", "contrib"])
def test_statistics_both_ways(library: str, source: str, tmp_path: Path) -> None:
    keras = importlib.import_module(library)
    keras.backend.clear_session()  # names are counted from the beginning
    model, golden = network(keras, source), np.load(GOLDEN / f"{source}.npz")
    optimizer = keras.optimizers.Adam(0.05, epsilon=1e-8)
    optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    like = checkpoint.save(str(tmp_path / "like"))
    given = {}
    if source == "contrib":  # fc0/BatchNorm here, norm0 there, all of one size: no one could know
        assert not convert(GOLDEN / "contrib-3", tmp_path / "m", like=like).written
        names = [getattr(variable, "path", variable.name).partition(":")[0] for variable in model.variables]
        given = {re.sub(r".*norm(\d)", r"fc\1/BatchNorm", name): name for name in names if "norm" in name}
    report = convert(GOLDEN / f"{source}-3", tmp_path / "m", to="object-based", like=like, given=given)
    assert report.complete, report
    checkpoint.restore(str(tmp_path / "m")).assert_consumed()
    assert np.abs(np.asarray(model(golden["x"], training=False)) - golden["prediction"]).max() <= 1e-6
    saved = checkpoint.save(str(tmp_path / "keras"))
    back = convert(saved, tmp_path / "back", to="name-based", like=GOLDEN / f"{source}-3", given=given)
    assert back.complete, back
    old, new = tensorflow_side.load(GOLDEN / f"{source}-3"), tensorflow_side.load(tmp_path / "back")
    assert old.keys() == new.keys()
    assert [name for name, value in old.items() if not tensorflow_side.same_bytes(new[name], value)] == []


def test_variables_of_zero_debias_are_reported(tmp_path: Path) -> None:
    """tf.contrib's zero_debias_moving_mean keeps two more variables a layer; Keras has nothing like it."""
    norm = {f"norm0/{role}": np.ones(4, np.float32) for role in ("beta", "moving_mean", "moving_variance")}
    more = {"norm0/moving_mean/biased": np.ones(4, np.float32), "norm0/moving_mean/local_step": np.float32(3)}
    old = write_tensors(tmp_path / "old" / "m", norm | more)
    library = importlib.import_module("tf_keras")
    model = library.Sequential([library.layers.InputLayer((4,)), library.layers.BatchNormalization(scale=False, name="norm0")])
    like = tf.train.Checkpoint(model=model).save(str(tmp_path / "like"))
    report = convert(old, tmp_path / "new" / "m", like=like)
    assert (report.written, set(report.unmatched_sources)) == (False, set(more))
