"""The hooks for pre-commit: their commands run as pre-commit runs them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import notebook
from tests.packaging.conftest import ROOT
from tests.running import write


def run_hook(name: str, folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Runs a hook on files, as pre-commit does: words of its entry, then the files, without a shell."""
    yaml = pytest.importorskip("yaml")
    hooks: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (hook,) = [hook for hook in hooks if hook["id"] == name]
    command = write(folder / "bin" / "estimator-bridge", f'#!/bin/sh\nexec {sys.executable} -m estimator_bridge "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PATH": f"{command.parent}:{os.environ['PATH']}"}
    return subprocess.run(
        [*shlex.split(hook["entry"]), *files],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.once
def test_the_check_fails_for_what_needs_a_human(tmp_path: Path) -> None:
    write(tmp_path / "a file.py", "import tensorflow as tf\ntf.placeholder\n")
    (tmp_path / "b.ipynb").write_bytes(notebook("import tensorflow as tf\ntf.train.Nothing"))
    assert run_hook("estimator-bridge-check", tmp_path, "a file.py").returncode == 0
    ended = run_hook("estimator-bridge-check", tmp_path, "a file.py", "b.ipynb")
    assert ended.returncode == 1
    assert "b.ipynb:cell 1:2:1: human: tf.train.Nothing: " in ended.stdout


@pytest.mark.once
def test_the_config_hook_reads_every_file(tmp_path: Path) -> None:
    write(tmp_path / "good one.pbtxt", "allow_soft_placement: true\n")
    write(tmp_path / "dropped.pbtxt", "placement_period: 3\n")
    write(tmp_path / "bad.pbtxt", "allow_soft_placement: perhaps\n")
    assert run_hook("estimator-bridge-config", tmp_path, "good one.pbtxt").returncode == 0
    assert run_hook("estimator-bridge-config", tmp_path, "dropped.pbtxt").returncode == 0, (
        "it is read; nothing is wrong with it"
    )
    ended = run_hook("estimator-bridge-config", tmp_path, "bad.pbtxt", "good one.pbtxt")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "bad.pbtxt" in ended.stderr
