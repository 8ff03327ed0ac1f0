"""``tf.contrib`` does the same under the runner as in TensorFlow 1.15.5, for each case in tests/golden/contrib."""

from __future__ import annotations

import json
import math
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.legacy.contrib.offered import offered
from estimator_bridge.legacy.upstream_contrib import cache
from tests.running import estimator_bridge_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

GOLDEN = Path(__file__).parents[2] / "golden" / "contrib"
CORE = "names of core"

# Names that few scripts use are in the fetched tf.contrib alone: packages, and cases of such names in other packages.
ONLY_FETCHED_PACKAGES = {"feature_column", "image"}
ONLY_FETCHED = {
    "crf": "multitag",
    "data": "assert_element_shape read_batch_features reduce_dataset",
    "estimator": """
        exports extenders multi_head multi_head_in_training multi_label_head multi_label_head_in_training
        multi_label_head_refused regression_heads replicate_model_fn replicated_graph replicated_sparse replication_refused rnn
        rnn_refused rnn_values saved_model_estimator tower_optimizer_alone
    """,
    "framework": "placeholders py_func remapped_from_checkpoint tensors",
    "layers": "bow_encoder divisive_normalization",
    "learn": "constants_of_learn input_fns metric_spec",
    "lookup": "string_to_index_tables",
    "opt": """
        adamax add_sign clip_by_global_norm lars lars_of_zeros multitask nadam power_sign reg_adagrad sign_decays
        variable_clipping
    """,
    "rnn": "block_gru_cells block_gru_in_dynamic_rnn block_gru_refuses",
    "seq2seq": "hardmax tile_batch",
    "slim": "rarely_used_ones_same_as_layers",
}
IS_FETCHED = cache.is_fetched()
PACKAGES = sorted({path.stem for path in GOLDEN.glob("*.json")} - (set() if IS_FETCHED else ONLY_FETCHED_PACKAGES))

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

    def record(packages: list[str]) -> None:
        ended = estimator_bridge_command("run", GOLDEN / "record.py", folder, *packages, cwd=GOLDEN)
        assert ended.code == 0, ended.err[-3000:]

    with pytest.MonkeyPatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setattr(sys, "executable", _warm_python)
        list(pool.map(record, (PACKAGES[start::4] for start in range(4))))  # four parts, each within a command's deadline
    return {package: json.loads((folder / f"{package}.json").read_text(encoding="utf-8")) for package in PACKAGES}


REFUSED = [(package, case) for package, cases in ONLY_FETCHED.items() for case in cases.split()]
LEFT_OUT = set() if IS_FETCHED else set(REFUSED)
CASES = [
    (package, case) for package in PACKAGES for case in golden(package) if case != CORE and (package, case) not in LEFT_OUT
]


@pytest.mark.parametrize(("package", "case"), CASES, ids=[f"{package}-{case}" for package, case in CASES])
def test_as_in_tensorflow_1(package: str, case: str, recorded: dict[str, Any]) -> None:
    expected, received = golden(package)[case], recorded[package][case]

    assert "raised" not in expected
    assert received.get("raised") is None
    assert differences(expected, received) == []


@pytest.mark.skipif(IS_FETCHED, reason="the real tf.contrib has these names")
@pytest.mark.parametrize(("package", "case"), REFUSED, ids=[f"{package}-{case}" for package, case in REFUSED])
def test_names_that_only_the_real_one_has_are_refused(package: str, case: str, recorded: dict[str, Any]) -> None:
    said = recorded[package][case]["raised"]

    assert re.match(r"Contrib(Attribute|Import)Error: TensorFlow 2 removed tf\.contrib\.", said)


OURS = sorted({*PACKAGES} - ONLY_FETCHED_PACKAGES)


@pytest.mark.parametrize("package", OURS)
def test_symbols_of_the_core_are_still_the_same_objects(package: str, recorded: dict[str, Any]) -> None:
    expected, received = golden(package)[CORE], recorded[package][CORE]

    missing = {name: path for name, path in expected.items() if (package, name) not in KEPT and name in offered(package)}

    assert missing.items() <= received.items()


@pytest.mark.skipif(IS_FETCHED, reason="the names are those that are offered without fetched files")
@pytest.mark.parametrize("package", OURS)
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
