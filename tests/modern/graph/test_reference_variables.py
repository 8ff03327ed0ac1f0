"""Variables that TensorFlow 1 made reference variables are updated as there, though they are resource variables here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.modern.graph.reference_variables import reference_variables
from tests.running import ROOT, estimator_bridge_command

v1 = tf.compat.v1
FOLDER = ROOT / "tests/golden/optimizers"
RECORDED = json.loads((FOLDER / "recorded.json").read_text(encoding="utf-8"))
SAMPLE = (
    "accumulating",
    "averaging_adam",
    "decayed_heavy_ball",
    "factored_and_decayed",
    "kernels",
    "lookahead",
    "only_reference",
)


def check(path: str, names: tuple[str, ...], folder: Path) -> None:
    ended = estimator_bridge_command(
        "run",
        "--path",
        path,
        FOLDER / "train.py",
        "--",
        folder / "results.json",
        *names,
        cwd=folder,
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert ended.code == 0, ended.err[-4000:]
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for name in names or RECORDED:
        assert_as_recorded(results[name], RECORDED[name])


def assert_as_recorded(result: Any, recorded: Any) -> None:
    np.testing.assert_allclose(result["losses"], recorded["losses"], rtol=1e-6)
    assert sorted(result["variables"]) == sorted(recorded["variables"])
    for key, value in recorded["variables"].items():
        np.testing.assert_allclose(result["variables"][key], value, rtol=1e-5, atol=1e-6, err_msg=key)


def test_optimizers_of_scripts_train_as_with_tensorflow_1(tmp_path: Path) -> None:
    check("modern", SAMPLE, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["legacy", "modern"])
def test_every_optimizer_trains_as_with_tensorflow_1(path: str, tmp_path: Path) -> None:
    check(path, (), tmp_path)


class Both(v1.train.Optimizer):  # type: ignore[name-defined]
    """Adds 1 to a reference variable and 10 to a resource variable."""

    def __init__(self) -> None:
        super().__init__(False, "Both")

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return var.assign_add(grad)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        return var.assign_add(10.0 * grad)


@pytest.mark.parametrize(
    ("asked", "kept", "expected"),
    [(None, True, 1.0), (False, True, 1.0), (True, True, 10.0), (None, False, 10.0)],
    ids=["default", "reference", "resource", "in_a_strategy"],
)
def test_the_methods_are_those_that_tensorflow_1_called(asked: bool | None, kept: bool, expected: float) -> None:
    with tf.Graph().as_default(), reference_variables(kept), v1.Session() as session:
        weight = v1.get_variable("weight", initializer=0.0, use_resource=asked)
        step = Both().apply_gradients([(tf.constant(1.0), weight)])
        session.run(weight.initializer)
        session.run(step)
        assert session.run(weight) == expected
        assert hasattr(weight, "handle")


def test_adding_to_a_reference_variable_in_place_gives_a_tensor_and_changes_nothing() -> None:
    with tf.Graph().as_default(), reference_variables(), v1.Session() as session:
        total = weight = v1.get_variable("weight", initializer=4.0)
        total += 2.0
        total **= 2.0
        session.run(weight.initializer)
        assert session.run([total, weight]) == [36.0, 4.0]
        resource = v1.get_variable("resource", initializer=4.0, use_resource=True)
        with pytest.raises(RuntimeError, match="not supported"):
            resource += 2.0


def test_what_an_assignment_returned_waits_for_it() -> None:
    """TensorFlow itself drops an assignment if only some rows of its result are read, or if a scatter goes on with it."""
    with tf.Graph().as_default(), reference_variables(), v1.Session() as session:
        slot = v1.get_variable("slot", initializer=[1.0, 2.0, 3.0])
        row = tf.gather(v1.assign(slot, 2.0 * slot), [1])
        session.run(slot.initializer)
        assert session.run(row) == [4.0]
        added = v1.scatter_add(v1.assign(slot, [0.0, 0.0, 0.0]), [1], [1.0])
        np.testing.assert_array_equal(session.run(tf.identity(added)), [0.0, 1.0, 0.0])
        pair = tf.gather_nd(v1.assign_add(slot, [1.0, 1.0, 1.0]), [[1], [2]])
        np.testing.assert_array_equal(session.run(pair), [2.0, 1.0])
