"""``tf.contrib`` does the same under the runner as in TensorFlow 1.15.5, for each case in tests/golden/contrib."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.legacy.contrib.offered import offered
from estimator_bridge.legacy.upstream_contrib import cache
from tests.running import estimator_bridge_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

GOLDEN = Path(__file__).parents[2] / "golden" / "contrib"
PACKAGES = sorted(path.stem for path in GOLDEN.glob("*.json"))
CORE = "names of core"

# Names that are a core symbol itself in 1.15; here they keep 1.15's behavior, which the core symbol has changed.
KEPT = {
    ("data", "AUTOTUNE"): "a number, which tf.data has as well now",
    ("cluster_resolver", "SlurmClusterResolver"): "its defaults",
    ("distribute", "ReplicaContext"): "the class of every context, not only of version 1's",
}


def golden(package: str) -> dict[str, Any]:
    return dict(json.loads((GOLDEN / f"{package}.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def recorded(_warm_python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("recorded")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "executable", _warm_python)
        for start in range(4):  # four parts, each within a command's deadline
            ended = estimator_bridge_command("run", GOLDEN / "record.py", folder, *PACKAGES[start::4], cwd=GOLDEN)
            assert ended.code == 0, ended.err[-3000:]
    return {package: json.loads((folder / f"{package}.json").read_text(encoding="utf-8")) for package in PACKAGES}


# Cases of names that only the real tf.contrib has.
ONLY_FETCHED = {
    ("estimator", "rnn"),
    ("estimator", "rnn_refused"),
    ("estimator", "rnn_values"),
    ("opt", "add_sign"),
    ("opt", "clip_by_global_norm"),
    ("opt", "lars"),
    ("opt", "lars_of_zeros"),
    ("opt", "multitask"),
    ("opt", "power_sign"),
    ("opt", "reg_adagrad"),
    ("opt", "sign_decays"),
    ("opt", "variable_clipping"),
}
REFUSED = set() if cache.is_fetched() else ONLY_FETCHED
CASES = [(package, case) for package in PACKAGES for case in golden(package) if case != CORE and (package, case) not in REFUSED]


@pytest.mark.parametrize(("package", "case"), CASES, ids=[f"{package}-{case}" for package, case in CASES])
def test_as_in_tensorflow_1(package: str, case: str, recorded: dict[str, Any]) -> None:
    expected, received = golden(package)[case], recorded[package][case]

    assert "raised" not in expected
    assert received.get("raised") is None
    assert differences(expected, received) == []


@pytest.mark.skipif(cache.is_fetched(), reason="the real tf.contrib has these names")
@pytest.mark.parametrize(
    ("package", "case"), sorted(ONLY_FETCHED), ids=[f"{package}-{case}" for package, case in sorted(ONLY_FETCHED)]
)
def test_names_that_only_the_real_one_has_are_refused(package: str, case: str, recorded: dict[str, Any]) -> None:
    assert recorded[package][case]["raised"].startswith(f"ContribAttributeError: TensorFlow 2 removed tf.contrib.{package}.")


@pytest.mark.parametrize("package", PACKAGES)
def test_symbols_of_the_core_are_still_the_same_objects(package: str, recorded: dict[str, Any]) -> None:
    expected, received = golden(package)[CORE], recorded[package][CORE]

    missing = {name: path for name, path in expected.items() if (package, name) not in KEPT and name in offered(package)}

    assert missing.items() <= received.items()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_has_a_case(package: str, recorded: dict[str, Any]) -> None:
    source = (GOLDEN / "cases" / f"{package}.py").read_text(encoding="utf-8")

    unchecked = {name for name in offered(package) if not re.search(rf"\b{name}\b", source)} - recorded[package][CORE].keys()

    assert unchecked == set()


def differences(expected: Any, received: Any, path: str = "") -> list[str]:
    if isinstance(expected, dict) and isinstance(received, dict):
        keys = sorted({*expected, *received})
        return [text for key in keys for text in differences(expected.get(key), received.get(key), f"{path}/{key}")]
    if isinstance(expected, list) and isinstance(received, list) and len(expected) == len(received):
        pairs = enumerate(zip(expected, received, strict=True))
        return [text for index, (one, other) in pairs for text in differences(one, other, f"{path}/{index}")]
    if isinstance(expected, float) and isinstance(received, (int, float)):
        same = math.isclose(expected, received, rel_tol=5e-5, abs_tol=1e-6) or (math.isnan(expected) and math.isnan(received))
    else:
        same = expected == received
    return [] if same else [f"{path}: {expected!r} in TensorFlow 1.15.5, {received!r} here"]


def test_differences_are_found() -> None:
    assert differences({"a": [1.0, "x"]}, {"a": [1.001, "x"]}) == ["/a/0: 1.0 in TensorFlow 1.15.5, 1.001 here"]
    assert differences({"a": 1}, {"b": 1}) == ["/a: 1 in TensorFlow 1.15.5, None here", "/b: None in TensorFlow 1.15.5, 1 here"]
    assert differences([1.0], [1.0, 2.0]) == [": [1.0] in TensorFlow 1.15.5, [1.0, 2.0] here"]
    assert differences([1.0, 2.0], [1.0000001, 2]) == []
