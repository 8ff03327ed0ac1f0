"""Listings of a model_dir by Python, which find none of the side's checkpoints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import glob, os, pathlib, sys
from estimator_bridge.parity.recording.folders.python_listings import note_listings
asked, own = sys.argv[1:3]
note_listings(lambda path: path.replace(asked, own), print)
{}
"""


@pytest.mark.parametrize(
    "listing", ["os.listdir(asked)", "glob.glob(asked + '/*.index')", "list(pathlib.Path(asked).glob('*'))"]
)
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_listing_by_python_is_noted_once_if_the_side_has_files(tmp_path: Path, listing: str, *, is_empty: bool) -> None:
    asked, own = tmp_path / "asked", tmp_path / "own"
    for folder in (asked, own):
        folder.mkdir()
    if not is_empty:
        (own / "model.ckpt-1.index").touch()
    script = tmp_path / "train.py"
    script.write_text(PROGRAM.format(f"{listing}\n{listing}\nos.listdir(own)"))

    printed = subprocess.run([sys.executable, script, asked, own], check=True, capture_output=True, text=True).stdout

    assert printed.count("The script lists") == (not is_empty)
    assert str(asked) in printed or is_empty
