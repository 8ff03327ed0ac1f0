"""Files of tf.contrib are mended in memory, and what cannot run is refused at its use."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from estimator_bridge.legacy.upstream_contrib import cache, fetch, wheels
from tests.legacy.upstream_contrib.wheels import make_wheels
from tests.running import ROOT, estimator_bridge_command, write

_WRAPPER = """
from tensorflow.python.framework import op_def_library as _op_def_library
def gather_tree(step_ids, parent_ids, max_sequence_lengths, end_token, name=None):
  return _op_def_lib._apply_op_helper("GatherTree", step_ids=step_ids)
def add_v2(x, y, name=None):
  return _op_def_lib._apply_op_helper("AddV2", x=x, y=y)
def grow_trees(x, name=None):
  return _op_def_lib._apply_op_helper("GrowTrees", x=x)
_op_def_lib = _op_def_library.OpDefLibrary()
"""
FILES = {
    "tensorflow_core/contrib/demo/__init__.py": """
import numpy as np
from tensorflow.contrib.demo.ops.gen_demo_ops import *
from tensorflow.contrib.demo.ops import gen_demo_ops
from tensorflow.python.framework.ops import register_tensor_conversion_function
from tensorflow.python.ops import math_ops, rnn_cell_impl
from tensorflow_core.python.ops import array_ops
from tensorflow.python.keras.layers import Dense
whole = np.int(3.7)
data = np.zeros(1).tostring()
""",
    "tensorflow_core/contrib/demo/ops/__init__.py": "",
    "tensorflow_core/contrib/demo/ops/gen_demo_ops.py": _WRAPPER,
    "tensorflow_core/contrib/data/__init__.py": "real = True\n",
    "tensorflow_core/contrib/estimator/__init__.py": "",
    "tensorflow_core/contrib/tpu/__init__.py": "raise RuntimeError\n",
}
SCRIPT = ROOT / "tests" / "data" / "fetched_contrib.py"


@pytest.mark.usefixtures("warm_python")
def test_a_script_gets_the_fetched_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch.fetch(make_wheels(tmp_path, monkeypatch, FILES), lambda line: None)
    starter = write(
        tmp_path / "start.py",
        f'''
        """Runs the command with the small wheels' manifest in place of the official one."""
        import sys
        from estimator_bridge.legacy.upstream_contrib import wheels
        wheels.MANIFEST_SHA256 = {wheels.MANIFEST_SHA256!r}
        from estimator_bridge.cli.main import main
        sys.exit(main(sys.argv[1:]))
    ''',
    )
    first, second = (_json(starter, SCRIPT) for _ in range(2))
    assert first == second
    assert {name: value for name, value in first.items() if name != "said"} == {
        "whole": 3, "length": 8, "total": 5.0, "beams": [[[2, 1]], [[3, 4]]], "same": True, "keras": True, "real": True, "cell": True,
        "older": True,
        "tpu": True, "missing": False,
    }  # fmt: skip
    assert str(first["said"]).startswith("NotSupportedError: The operation GrowTrees ")
    assert "fetched_contrib.py:10" in str(first["said"])
    assert list((tmp_path / "cache" / "compiled").rglob("*"))


def _json(starter: Path, script: Path) -> dict[str, object]:
    import os
    import subprocess

    import estimator_bridge

    done = subprocess.run(
        [sys.executable, str(starter), "run", str(script)],
        env=os.environ | {"PYTHONPATH": str(Path(estimator_bridge.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.slow
@pytest.mark.skipif(not cache.is_fetched(), reason=".ci/full fetches the official files, and runs this test with them")
def test_every_package_of_the_official_files_can_be_imported(tmp_path: Path) -> None:
    script = write(
        tmp_path / "train.py",
        """
        import json
        import tensorflow as tf
        print(json.dumps([len(dir(getattr(tf.contrib, name))) for name in dir(tf.contrib)]))
    """,
    )
    sizes = estimator_bridge_command("run", script, cwd=tmp_path).last_line
    assert len(sizes) > 85
    assert sum(sizes) > 2500
