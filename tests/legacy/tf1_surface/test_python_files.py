"""A script that imports a class or function from a file of ``tensorflow.python`` gets the one that TensorFlow 1.15.5 had there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import ROOT, estimator_bridge_command

pytestmark = [pytest.mark.usefixtures("warm_python")]
SCRIPT = Path(__file__).parent / "python_files_script.py"
RECORDED = Path(__file__).parents[2] / "golden" / "file_names" / "names.json"

_FILES = "tensorflow.python"
SAME = {  # what does the same for the calls that TensorFlow 1 allowed
    f"{_FILES}.distribute.distribute_lib:ReplicaContext",  # the class of every context
    f"{_FILES}.eager.context:executing_eagerly",
    f"{_FILES}.eager.def_function:run_functions_eagerly",
    f"{_FILES}.framework.framework_lib:convert_to_tensor",
    f"{_FILES}.framework.framework_lib:name_scope",
    f"{_FILES}.framework.ops:convert_to_tensor",
    f"{_FILES}.framework.ops:name_scope",
    f"{_FILES}.ops.array_ops:diag_part",
    f"{_FILES}.ops.array_ops:tensor_scatter_update",
    f"{_FILES}.ops.math_ops:lin_space",
    f"{_FILES}.ops.math_ops:mod",
    f"{_FILES}.ops.standard_ops:diag_part",
    f"{_FILES}.ops.standard_ops:lin_space",
    f"{_FILES}.ops.standard_ops:mod",
    f"{_FILES}.ops.standard_ops:tensor_scatter_update",
    f"{_FILES}.util.compat:as_str",
}


@pytest.mark.parametrize("path", ["legacy", "modern"])
def test_as_in_tensorflow_1(path: str, tmp_path: Path) -> None:
    found = estimator_bridge_command("run", "--path", path, SCRIPT, RECORDED, cwd=tmp_path).last_line

    assert found["checked"] > 1500
    assert set(found["others"]) - SAME == set()


def test_a_script_may_replace_a_name_of_a_file(tmp_path: Path) -> None:
    script = ROOT / "tests" / "data" / "replaced_file_name.py"
    assert estimator_bridge_command("run", "--path", "modern", script, cwd=tmp_path).last_line == [True, 5, True]
