"""A report says when, where and from which commit a comparison ran, and the line that repeats it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_bridge.parity.report.circumstances import circumstances
from tests.running import write


def git(folder: Path, *words: str) -> None:
    author = {f"GIT_{role}_{name}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for name in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=folder, env=os.environ | author, check=True, capture_output=True, timeout=60)


def test_date_host_and_processors_are_named(tmp_path: Path) -> None:
    found = circumstances(str(tmp_path / "train.py"))

    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", found["date"])
    assert int(found["processors"]) >= 1
    assert "commit" not in found, "there is no repository"


def test_the_commit_of_the_script_is_named_and_whether_files_have_changed(tmp_path: Path) -> None:
    script = write(tmp_path / "train.py", "first")
    for words in (["init", "--quiet"], ["add", "train.py"], ["commit", "--quiet", "--message", "first"]):
        git(tmp_path, *words)
    clean = circumstances(str(script))["commit"]
    script.write_text("second")

    assert re.fullmatch(r"[0-9a-f]{40}", clean)
    assert circumstances(str(script))["commit"] == f"{clean} with changes"


def test_the_line_repeats_the_command_where_it_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["/bin/estimator-bridge", "compare", "train.py", "--name=a b"])

    assert circumstances("train.py")["repeat"] == f"cd '{folder}' && estimator-bridge compare train.py '--name=a b'"


def test_no_line_repeats_a_call_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pytest"])

    assert "repeat" not in circumstances("train.py")
