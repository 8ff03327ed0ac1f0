"""Whole trainings with the real tf.contrib, from equal initial values, end as TensorFlow 1.15.5's did, on both paths."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.legacy.upstream_contrib import cache
from tests.golden.upstream_contrib import initial_values
from tests.running import Ended, estimator_bridge_command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not cache.is_fetched(), reason=".ci/full fetches the official files, and runs these tests with them"),
    pytest.mark.usefixtures("warm_python"),
]

GOLDEN = Path(__file__).parents[2] / "golden" / "upstream_contrib"
RECORDED: dict[str, Any] = json.loads((GOLDEN / "trainings.json").read_text(encoding="utf-8"))
TOLERANCE = 2e-5
"""Largest difference of a number, relative to its size and to the norm of its variable, or absolute below 1."""


def differences(expected: Any, received: Any, path: str = "") -> list[str]:
    """Returns a line for each value that differs."""
    if isinstance(expected, dict) and isinstance(received, dict):
        keys = sorted({*expected, *received})
        return [line for key in keys for line in differences(expected.get(key), received.get(key), f"{path}/{key}")]
    if isinstance(expected, list) and isinstance(received, list) and len(expected) == len(received):
        pairs = enumerate(zip(expected, received, strict=True))
        return [line for index, (one, other) in pairs for line in differences(one, other, f"{path}/{index}")]
    if isinstance(expected, float) and isinstance(received, (int, float)):
        same = math.isclose(expected, received, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    else:
        same = expected == received
    return [] if same else [f"{path}: {expected!r} in TensorFlow 1.15.5, {received!r} here"]


def digest_differences(expected: dict[str, list[Any]], received: dict[str, list[Any]]) -> list[str]:
    """Returns a line for each variable whose digest differs by more than ``TOLERANCE`` of its norm."""
    assert received.keys() == expected.keys()
    lines = []
    for name, numbers in expected.items():
        size = max(1.0, numbers[-1]) if numbers and isinstance(numbers[-1], float) else 1.0
        scaled = [[one / size if isinstance(one, float) else one for one in digest] for digest in (numbers, received[name])]
        lines += differences(scaled[0], scaled[1], name)
    return lines


REFUSED = {  # trainings that the modern path does not run, and what it says
    f"learn {name}": f"tf.contrib.learn.{estimator} cannot run here"
    for name, estimator in {
        "canned": "DNNLinearCombinedClassifier",
        "estimator": "Estimator",
        "experiment": "Estimator",
        "factors": "WALSMatrixFactorization",
        "mixture": "GMM",
    }.items()
}
UNORDERED = {"clusters mini-batches"}
"""Trainings without an order in TensorFlow 1: it counts the points of a cluster before or after it has read their number so far."""
MODERN = sorted(RECORDED.keys() - REFUSED.keys() - UNORDERED)


def trained(name: str, path: str, folder: Path) -> Ended:
    """Runs a script from the recorded initial values."""
    script, *variant = RECORDED[name]["command"]
    initial_values.write(str(folder), RECORDED[name]["initial"])
    return estimator_bridge_command("run", "--path", path, GOLDEN / "trainings" / script, folder, *variant, cwd=folder)


def assert_as_recorded(name: str, ended: Ended, folder: Path) -> None:
    assert ended.code == 0, ended.err[-6000:]
    assert differences(RECORDED[name]["report"], ended.last_line) == []
    assert digest_differences(RECORDED[name]["final"], initial_values.digests(str(folder))) == []


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_the_legacy_path_ends_as_tensorflow_1_did(name: str, tmp_path: Path) -> None:
    assert_as_recorded(name, trained(name, "legacy", tmp_path / "model"), tmp_path / "model")


@pytest.mark.parametrize("name", MODERN)
def test_the_modern_path_ends_as_tensorflow_1_did(name: str, tmp_path: Path) -> None:
    assert_as_recorded(name, trained(name, "modern", tmp_path / "model"), tmp_path / "model")


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_the_modern_path_refuses_by_name(name: str, tmp_path: Path) -> None:
    ended = trained(name, "modern", tmp_path / "model")

    assert ended.code == 2
    assert REFUSED[name] in ended.err


COMPARED = {  # training -> options of the comparison
    **dict.fromkeys(["distributions", "heads multi", "layers Adagrad", "seq2seq", "slim resnet", "tagger"], ()),
    "gan sequential": ("--free-run",),  # its hooks read batches of their own, which are not recorded
}


@pytest.mark.parametrize("name", sorted(COMPARED))
def test_a_comparison_finds_both_paths_equal(name: str, tmp_path: Path) -> None:
    script, *variant = RECORDED[name]["command"]
    folder = tmp_path / "model"
    initial_values.write(str(folder), RECORDED[name]["initial"])

    ended = estimator_bridge_command("compare", *COMPARED[name], GOLDEN / "trainings" / script, folder, *variant, cwd=tmp_path)

    assert ended.code == 0, ended.out[-3000:] + ended.err[-3000:]


def test_a_recording_of_steps_is_not_enough_for_hooks_that_read_batches(tmp_path: Path) -> None:
    script, *variant = RECORDED["gan sequential"]["command"]
    folder = tmp_path / "model"
    initial_values.write(str(folder), RECORDED["gan sequential"]["initial"])

    ended = estimator_bridge_command("compare", GOLDEN / "trainings" / script, folder, *variant, cwd=tmp_path)

    assert ended.code == 2, ended.out[-3000:] + ended.err[-3000:]
    assert "Compare with --free-run." in " ".join(ended.out.split())
