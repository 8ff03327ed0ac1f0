"""A user's own ``compat.py`` or ``legacy`` package and ours never shadow each other, however the script is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Distributions, Environment

NAMES, TRAINING = (ROOT / "tests" / "data" / "shadowing" / name for name in ("names.py", "training.py"))
EXPECTED = {"theirs": ["the user's"] * 3, "ours": [False] * 3}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script beside modules with the names of our folders."""
    folder = tmp_path / "project"
    (folder / "legacy").mkdir(parents=True)
    (folder / "legacy" / "__init__.py").write_text("", encoding="utf-8")
    for module in ("compat.py", "modern.py", "legacy/layers.py"):
        (folder / module).write_text('WHOSE = "the user\'s"\n', encoding="utf-8")
    (folder / "train.py").write_text(NAMES.read_text(encoding="utf-8"), encoding="utf-8")
    return folder / "train.py"


def last_line(output: str) -> object:
    return json.loads(output.splitlines()[-1])


@pytest.fixture
def installed(environment: Environment, distributions: Distributions) -> Environment:
    """An environment with the wheel in it."""
    environment.install(distributions.wheel)
    return environment


def test_in_a_plain_script(installed: Environment, script: Path) -> None:
    assert last_line(installed.run(script)) == EXPECTED


@pytest.mark.parametrize("path", ["legacy", "modern"])
def test_in_a_script_under_run(installed: Environment, script: Path, path: str, tmp_path: Path) -> None:
    texts = [file.read_text(encoding="utf-8") for file in (TRAINING, NAMES)]
    script.write_text("\n".join(texts), encoding="utf-8")  # the modern path needs an Estimator call
    arguments = ("run", "--path", path, script)
    assert last_line(installed.console_script(arguments, cwd=tmp_path)) == EXPECTED


def test_in_a_script_under_run_from_its_own_folder(installed: Environment, script: Path) -> None:
    assert last_line(installed.console_script(("run", script.name), cwd=script.parent)) == EXPECTED


def test_in_a_module_under_run(installed: Environment, script: Path) -> None:
    assert last_line(installed.console_script(("run", "-m", script.stem), cwd=script.parent)) == EXPECTED
