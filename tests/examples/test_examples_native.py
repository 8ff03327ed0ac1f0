"""The examples are what they claim to be: TensorFlow 1 programs that know nothing of a bridge."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ["digits", "wide_deep"]

# Native TensorFlow 2.15 still has the Estimator: its compat.v1 in the place of TensorFlow is TensorFlow 1, near enough. No bridge.
AS_TENSORFLOW_1 = str(Path(__file__).with_name("as_tensorflow_1.py"))


def source(example: str) -> str:
    return (ROOT / "examples" / example / "train.py").read_text()


def flag_defaults(example: str) -> dict[str, Any]:
    """What the `flags.DEFINE_...(name, default, help)` calls of the example say, but for where it writes."""
    calls = [node for node in ast.walk(ast.parse(source(example))) if isinstance(node, ast.Call)]
    defining = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("DEFINE_")]
    defaults = {ast.literal_eval(call.args[0]): ast.literal_eval(call.args[1]) for call in defining}
    del defaults["model_dir"]
    return defaults


def run_on_native(example: str, model_dir: Path, *flags: str) -> str:
    script = ROOT / "examples" / example / "train.py"
    command = [sys.executable, AS_TENSORFLOW_1, str(script), f"--model_dir={model_dir}", *flags]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def number_after(label: str, output: str) -> float:
    found = re.search(re.escape(label) + r"\s*([\d.]+)", output)
    assert found, output
    return float(found.group(1))


@pytest.mark.parametrize("example", EXAMPLES)
def test_python_3_7_can_read_it(example: str) -> None:
    ast.parse(source(example), feature_version=(3, 7))


@pytest.mark.parametrize("example", EXAMPLES)
def test_it_knows_nothing_of_a_bridge(example: str) -> None:
    assert not re.search(r"bridge|tf_keras|compat\.v1", source(example), re.IGNORECASE)
    assert "import tensorflow as tf\n" in source(example)


@pytest.mark.parametrize("example", EXAMPLES)
def test_its_golden_run_was_recorded_with_its_present_defaults(example: str) -> None:
    metadata = json.loads((ROOT / "tests" / "golden" / example / "metadata.json").read_text())
    assert metadata["tensorflow"] == "1.15.5"
    assert metadata["flags"] == flag_defaults(example) | {"num_threads": 1}


native = pytest.mark.skipif(not tf.__version__.startswith("2.15."), reason="the Estimator is native up to TensorFlow 2.15")


@native
@pytest.mark.slow
def test_digits_runs_on_native_tensorflow(tmp_path: Path) -> None:
    output = run_on_native("digits", tmp_path)
    assert number_after("Test accuracy after 200 steps:", output) >= 0.95
    assert list(tmp_path.glob("export/digits/*/saved_model.pb"))


@native
@pytest.mark.slow
def test_wide_deep_runs_on_native_tensorflow(tmp_path: Path) -> None:
    output = run_on_native("wide_deep", tmp_path, "--train_steps=200", "--num_examples=20000")
    assert number_after("AUC", output) >= 0.65
    assert list(tmp_path.glob("export/flights/*/saved_model.pb"))
