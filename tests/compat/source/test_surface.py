"""The table of TensorFlow's names is in step with the installed TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_bridge.compat.source.surface import canonical, installed_version, load_surface


def test_in_step_with_the_installed_tensorflow(tmp_path: Path) -> None:
    """Every module and every public name; of TensorFlow's files, the names in each twenty-fifth."""
    root = Path(__file__).parents[3]
    command = [sys.executable, str(Path(__file__).with_name("installed_names.py")), str(tmp_path / "names.json")]
    environment = os.environ | {"PYTHONPATH": f"{root}:{root / 'src'}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=180)
    listed = json.loads((tmp_path / "names.json").read_text())
    if listed["version"] != installed_version():
        pytest.skip(f"the table has {installed_version()}, not {listed['version']}")

    surface = load_surface(listed["version"])
    folders = {name for name, names in surface.modules.items() if not names}

    assert set(listed["symbols"]) - set(surface.modules) == set()
    assert set(surface.modules) - set(listed["symbols"]) <= folders
    different = {name for name, names in listed["symbols"].items() if names and set(names) != surface.modules[name]}
    assert different == set(), "run make_symbols.py in both environments, and merge"


THERE = [
    "tensorflow",
    "tensorflow.python.math_ops.matmul",
    "tensorflow.python.ops.convert_to_tensor",
    "tensorflow.Session",
    "tensorflow.logging.__dict__",
    "tensorflow.Session.run",
    "tensorflow.layers.dense",
    "tensorflow.estimator.Estimator",
    "tensorflow.estimator.inputs.numpy_input_fn",
    "tensorflow.python",
    "tensorflow.python.framework.ops.Graph",
    "tensorflow.python.estimator.canned.head",
    "tensorflow.python.estimator.run_config.RunConfig",
    "tensorflow.core.framework.graph_pb2.GraphDef",
    "tensorflow.keras.layers.Dense",
    "tensorflow.compat.v2.summary.create_file_writer",
    "tensorflow.train.AdamOptimizer",
]
NOT_THERE = [
    "tensorflow.python.no_such_module",
    "tensorflow.python.math_ops.no_such_name",
    "tensorflow.python.ops.no_such_name",
    "tensorflow.contrib",
    "tensorflow.nowhere",
    "tensorflow.train.Adam",
    "tensorflow.python.nowhere",
    "tensorflow.python.framework.ops.nowhere",
    "tensorflow.summary.create_file_writer",
    "tensorflow.core.framework.nowhere_pb2",
]


@pytest.mark.parametrize("version", ["2.15.1", "2.21.0"])
def test_names_that_are_there(version: str) -> None:
    surface = load_surface(version)
    assert [name for name in THERE if not surface.has(name)] == []
    assert [name for name in NOT_THERE if surface.has(name)] == []


def test_what_is_missing_is_named_by_its_first_part() -> None:
    assert load_surface("2.21.0").nearest("tensorflow.nowhere.at.all") == "tensorflow.nowhere"


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("tensorflow.compat.v1.compat.v1.Session", "tensorflow.Session"),
        ("tensorflow_estimator.python.estimator.run_config", "tensorflow.python.estimator.run_config"),
        ("tensorflow.compat.v2.function", "tensorflow.compat.v2.function"),
    ],
)
def test_one_spelling(name: str, same: str) -> None:
    assert canonical(name) == same
