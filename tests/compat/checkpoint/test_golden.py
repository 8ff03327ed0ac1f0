"""Checkpoints that real TensorFlow 1.15.5 wrote: tests/golden/make_checkpoints.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator_bridge.compat.checkpoint import convert, read_index
from estimator_bridge.compat.checkpoint.errors import UnsupportedError
from estimator_bridge.compat.checkpoint.inspection.difference import differences
from estimator_bridge.compat.checkpoint.inspection.summary import summarize
from estimator_bridge.compat.checkpoint.inspection.verification import verify_all
from estimator_bridge.compat.checkpoint.opening import opened
from tests.compat.checkpoint import tensorflow_side

GOLDEN = Path(__file__).parents[2] / "golden" / "checkpoints"


@pytest.mark.parametrize("name", ["v1.ckpt", "v1-sharded.ckpt"])
def test_v1_has_the_values_of_v2(name: str) -> None:
    with opened(GOLDEN / name) as index:
        rows = list(differences(index, read_index(GOLDEN / "v2.ckpt")))
        assert len(rows) == 14
        assert all(row.within(0.0) for row in rows)
        assert len(index.pieces["partitioned"]) == 3


@pytest.mark.parametrize("name", ["v1.ckpt", "v1-sharded.ckpt"])
def test_v1_is_converted(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="V1's format"):
        read_index(GOLDEN / name)
    convert(GOLDEN / name, tmp_path / "m", to="name-based", rename=[("^of_", "kind/")])
    old, new = tensorflow_side.load(GOLDEN / "v2.ckpt"), tensorflow_side.load(tmp_path / "m")
    assert all(tensorflow_side.same_bytes(new[name.replace("of_", "kind/")], value) for name, value in old.items())


@pytest.mark.parametrize(
    ("name", "optimizers"),
    [
        ("dnn.ckpt-2", {"Adagrad"}),
        ("linear.ckpt-2", {"Ftrl"}),
        ("combined.ckpt-2", {"Adagrad", "Ftrl"}),
        ("partitioned.ckpt-2", {"Adam"}),
    ],
)
def test_every_slot_is_recognised(name: str, optimizers: set[str]) -> None:
    index = read_index(GOLDEN / name)
    assert verify_all(index).unchecked == ()
    summary = summarize(index)
    assert (summary.step, summary.kind) == (2, "name-based")
    assert set(summary.optimizers()) == optimizers
    slots = [variable for variable in summary.variables if variable.slot]
    others = [variable for variable in summary.variables if not variable.slot]
    assert len(slots) > len(optimizers)
    assert all(last not in variable.name for variable in others for last in ("Adagrad", "Ftrl", "Adam"))
    shapes = {variable.name: variable.shape for variable in summary.variables}
    assert all(variable.slot and shapes[variable.slot.variable] == variable.shape for variable in slots)


def test_variables_of_two_parameter_servers_made_whole(tmp_path: Path) -> None:
    convert(GOLDEN / "partitioned.ckpt-2", tmp_path / "m", to="name-based", partition=[("embedding/table", 1)])
    index = read_index(tmp_path / "m")
    assert index.pieces == {}
    old, new = tensorflow_side.load(GOLDEN / "partitioned.ckpt-2"), tensorflow_side.load(tmp_path / "m")
    assert all(tensorflow_side.same_bytes(new[name], value) for name, value in old.items())
