"""Checkpoints compared by value: TensorFlow's own writer makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.values import compare_values, first_update_difference, first_updates, initial_values, max_abs_diff

WEIGHTS = np.array([0.5, -0.25, 1.0], np.float32)
UPDATE = np.array([0.01, -0.02, 0.03], np.float32)


def save(prefix: str, **variables: Any) -> str:
    import tensorflow as tf

    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    names = [name.replace("__", "/") for name in variables]
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(value) for value in variables.values()],
    )
    return prefix


def test_each_variable_has_its_difference(tmp_path: Path) -> None:
    legacy = save(str(tmp_path / "old"), a=WEIGHTS, b=np.float32(2), only=WEIGHTS, other=WEIGHTS)
    modern = save(str(tmp_path / "new"), a=WEIGHTS + np.float32(0.5), b=np.float32(2), new=WEIGHTS, other=WEIGHTS[:2])

    found = {diff.name: (diff.max_abs_diff, diff.note) for diff in compare_values(legacy, modern)}

    assert found == {
        "a": (0.5, ""),
        "b": (0.0, ""),
        "new": (None, "only on the modern side"),
        "only": (None, "only on the legacy side"),
        "other": (None, "shape [2] on the modern side"),
    }


@pytest.mark.parametrize(
    ("legacy", "modern", "expected"),
    [
        (np.array([], np.float32), np.array([], np.float32), 0.0),
        (np.array([np.nan]), np.array([np.nan]), 0.0),
        (np.array([np.nan]), np.array([1.0]), float("inf")),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.5]), 0.5),
        (np.array([np.inf]), np.array([np.inf]), 0.0),
        (np.array([2**60]), np.array([2**60 + 1]), 1.0),
        (np.array([1, 2]), np.array([1, 4]), 2.0),
        (np.array([b"a"]), np.array([b"a"]), 0.0),
        (np.array([b"a"]), np.array([b"b"]), float("inf")),
        (np.array([1.0]), np.array([b"1"]), float("inf")),
        (np.array([True]), np.array([False]), float("inf")),
        (np.array(41, np.int64), np.array(40, np.int64), 1.0),
        (np.array(1.5), np.array(1.0), 0.5),
        (np.array([[1, 2], [3, 4]], np.int64), np.array([[1, 2], [3, 9]], np.int64), 5.0),
        (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.5]]), 0.5),
    ],
)
def test_differences_of_what_is_no_plain_number(legacy: Any, modern: Any, expected: float) -> None:
    assert max_abs_diff(legacy, modern) == expected


def updates(folder: Path, modern: dict[str, Any], legacy: dict[str, Any]) -> list[str]:
    sides = Trace(folder / "legacy"), Trace(folder / "modern")
    for trace, change in zip(sides, (legacy, modern), strict=True):
        save(trace.values("train-0", "initial"), w=WEIGHTS, b=WEIGHTS, global_step=np.int64(0))
        save(trace.values("train-0", "first"), w=WEIGHTS + change["w"], b=WEIGHTS + change["b"], global_step=np.int64(1))
    return [finding.message for finding in first_updates(*sides, "train-0", 1)]


def test_equal_updates_give_no_finding(tmp_path: Path) -> None:
    same = {"w": UPDATE, "b": UPDATE * 2}
    assert updates(tmp_path, same, same) == []


def test_rounding_gives_no_finding(tmp_path: Path) -> None:
    assert updates(tmp_path, {"w": UPDATE + np.float32(2e-7), "b": UPDATE}, {"w": UPDATE, "b": UPDATE}) == []


def test_updates_in_proportion_are_named_by_their_ratio(tmp_path: Path) -> None:
    (message,) = updates(tmp_path, {"w": UPDATE * 1.1, "b": UPDATE * 1.1}, {"w": UPDATE, "b": UPDATE})
    assert "w x1.1" in message
    assert "2 of 2" in message


def test_a_variable_that_stands_still_is_named_alone(tmp_path: Path) -> None:
    (message,) = updates(tmp_path, {"w": UPDATE * 0, "b": UPDATE}, {"w": UPDATE, "b": UPDATE})
    assert message == "The modern side does not update w."


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (UPDATE, 0.0),
        (UPDATE * np.float32(1.01), 0.01),
        (UPDATE * np.float32("nan"), np.inf),
        (UPDATE + np.float32(1e-7), 0.0),  # the values after it are known to that
    ],
)
def test_the_share_by_which_first_updates_differ(change: Any, expected: float, tmp_path: Path) -> None:
    same = {"w": UPDATE, "b": UPDATE}
    found = updates(tmp_path, {"w": change, "b": UPDATE}, same)
    share = first_update_difference(Trace(tmp_path / "legacy"), Trace(tmp_path / "modern"), "train-0")
    assert share == pytest.approx(expected, abs=1e-4)
    assert bool(found) is (expected > 0)


def test_an_update_that_is_lost_in_a_small_variable_is_no_rounding(tmp_path: Path) -> None:
    for name, update in (("legacy", 3e-7), ("modern", 0.0)):
        trace = Trace(tmp_path / name)
        for moment, value in (("initial", 0.05), ("first", 0.05 + update)):
            save(trace.values("train-0", moment), w=np.float32([value]))
    share = first_update_difference(Trace(tmp_path / "legacy"), Trace(tmp_path / "modern"), "train-0")
    assert share is not None
    assert share > 0.9


def test_other_initial_values_are_named(tmp_path: Path) -> None:
    legacy, modern = save(str(tmp_path / "old"), w=WEIGHTS, b=WEIGHTS), save(str(tmp_path / "new"), w=WEIGHTS, b=-WEIGHTS)
    (finding,) = initial_values(legacy, modern, 0)
    assert finding.message == "The initial values differ: b (2)."
    assert list(initial_values(legacy, legacy, 0)) == []
