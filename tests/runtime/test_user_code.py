"""Which files are the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("any_name/tensorflow/__init__.py", "True False"),
        ("any_name/tensorflow/other.py", "True True"),  # a folder of that name, and no package
        ("any_name/tensorflow.py", "True True"),  # a module of the user's own
    ],
)
def test_a_tensorflow_in_a_folder_of_any_name_is_not_the_users(tmp_path: Path, marker: str, expected: str) -> None:
    """As after pip install --target; messages would name TensorFlow's lines as the script's."""
    own, other = tmp_path / "any_name" / "train.py", tmp_path / "any_name" / "tensorflow" / "ops.py"
    other.parent.mkdir(parents=True)
    for file in (own, other, tmp_path / marker):
        file.touch()
    program = "import sys; from estimator_bridge.runtime.user_code import is_users; print(*map(is_users, sys.argv[1:]))"
    command = [sys.executable, "-c", program, str(own), str(other)]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "any_name")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == expected
