"""Listings of a model_dir by Python, which find none of the side's checkpoints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "data" / "listed_model_dir.py"


@pytest.mark.parametrize("function", ["listdir", "glob", "pathlib"])
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_listing_by_python_is_noted_once_if_the_side_has_files(tmp_path: Path, function: str, *, is_empty: bool) -> None:
    asked, own = tmp_path / "asked", tmp_path / "own"
    for folder in (asked, own):
        folder.mkdir()
    if not is_empty:
        (own / "model.ckpt-1.index").touch()
    command = [sys.executable, str(PROGRAM), str(asked), str(own), function]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert printed.count("The script lists") == (not is_empty)
    assert str(asked) in printed or is_empty
