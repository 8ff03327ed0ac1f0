"""Canned Estimators of TensorFlow 1.15.5, whose slots stand under ``t_0`` and ``part_0``, in Keras and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from estimator_bridge.compat.checkpoint import convert
from tests.compat.checkpoint import tensorflow_side

GOLDEN = Path(__file__).parents[3] / "golden" / "checkpoints"
RATE = 0.05
# Slots by hand: variable -> suffix of TF1's -> slot of tf_keras.optimizers.legacy.
DNN = ("dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_0/bias", "dnn/logits/kernel", "dnn/logits/bias")
EMBEDDING = "dnn/input_from_feature_columns/input_layer/w_embedding/embedding_weights"
SHARED = EMBEDDING.replace("w_embedding", "o_w_shared_embedding")  # of two columns
LINEAR = ("linear/linear_model/w/weights", "linear/linear_model/bias_weights")
CASES: list[tuple[str, dict[Any, tuple[tuple[str, ...], dict[str, str]]]]] = [
    ("dnn.ckpt-2", {"Adagrad": ((*DNN, EMBEDDING), {"t_0/Adagrad": "accumulator"})}),
    ("shared.ckpt-2", {"Adagrad": ((*DNN, SHARED), {"t_0/Adagrad": "accumulator"})}),
    (
        "linear.ckpt-2",
        {
            "Ftrl": (
                (*LINEAR, "linear/linear_model/x/weights"),
                {"part_0/Ftrl": "accumulator", "part_0/Ftrl_1": "linear"},
            )
        },
    ),
    (
        "combined.ckpt-2",
        {
            "Adagrad": ((*DNN, EMBEDDING), {"Adagrad": "accumulator"}),
            "Ftrl": (LINEAR, {"Ftrl": "accumulator", "Ftrl_1": "linear"}),
        },
    ),
]


@pytest.mark.parametrize(("name", "optimizers"), CASES, ids=[case[0] for case in CASES])
def test_canned_estimators_both_ways(name: str, optimizers: Any, tmp_path: Path) -> None:
    old = tensorflow_side.load(GOLDEN / name)
    made: dict[str, Any] = {}
    variables: dict[str, tf.Variable] = {}
    for kind, (names, _) in optimizers.items():
        made[kind] = getattr(tf_keras.optimizers.legacy, kind)(RATE)
        variables |= {variable: tf.Variable(tf.zeros(old[variable].shape), name=variable) for variable in names}
        made[kind]._create_all_weights([variables[variable] for variable in names])
    model = tf.train.Checkpoint(**{variable.replace("/", "_"): value for variable, value in variables.items()})
    keras = tf.train.Checkpoint(model=model, **{f"{kind.lower()}_optimizer": optimizer for kind, optimizer in made.items()})
    report = convert(GOLDEN / name, tmp_path / "m", to="object-based", like=keras.save(str(tmp_path / "like")))
    assert report.complete, report
    keras.restore(str(tmp_path / "m")).assert_consumed()
    for kind, (names, slots) in optimizers.items():
        for variable in names:
            np.testing.assert_array_equal(variables[variable].numpy(), old[variable])
            for suffix, slot in slots.items():
                found = made[kind].get_slot(variables[variable], slot).numpy()
                np.testing.assert_array_equal(found, old[f"{variable}/{suffix}"])
        assert made[kind].iterations.numpy() == 2
    saved = keras.save(str(tmp_path / "keras"))
    convert(saved, tmp_path / "back", to="name-based", like=GOLDEN / name)
    new = tensorflow_side.load(tmp_path / "back")
    assert new.keys() == old.keys()
    assert [name for name, value in old.items() if not tensorflow_side.same_bytes(new[name], value)] == []


def test_two_optimizers_that_do_not_agree(tmp_path: Path) -> None:
    """Each slot is divided by its own optimizer's learning rate; of the counts of updates, which TF1 has one of, the larger counts."""
    variables = [tf.Variable(tf.zeros(size), name=f"v{size}") for size in (2, 3)]
    made = [tf_keras.optimizers.legacy.SGD(rate, 0.9) for rate in (0.1, 0.2)]
    for steps, (optimizer, variable) in enumerate(zip(made, variables, strict=True), 1):
        for _ in range(steps):
            optimizer.apply_gradients([(tf.ones_like(variable), variable)])
    keras = tf.train.Checkpoint(model=tf.train.Checkpoint(a=variables[0], b=variables[1]), one=made[0], other=made[1])
    saved = keras.save(str(tmp_path / "keras"))
    report = convert(saved, tmp_path / "m", to="name-based")
    slots = {name: value for name, value in tensorflow_side.load(tmp_path / "m").items() if name.endswith("/Momentum")}
    # TF1's accumulator of gradients of 1 with momentum 0.9: 1 after one update, 1 + 0.9 after two
    np.testing.assert_allclose(slots.pop("v2/Momentum"), [1.0, 1.0], rtol=1e-6)
    np.testing.assert_allclose(slots.pop("v3/Momentum"), [1.9, 1.9, 1.9], rtol=1e-6)
    assert not slots
    assert "The optimizers made 1, 2 updates; global_step and beta powers are those of 2." in report.warnings
