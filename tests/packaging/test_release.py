"""The image, the development container and the release: their shell lines run in a new clone, without their engines."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import venv
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge import __version__
from tests.packaging.conftest import ROOT, run


def shell(command: str, folder: Path, environment: Path) -> str:
    """Returns the output of a shell command whose ``python`` is a virtual environment's."""
    variables = {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "GITHUB_REF_NAME": f"v{__version__}"}
    return run("bash", "-euo", "pipefail", "-c", command, cwd=folder, environment=variables, deadline=600)


def instructions(name: str) -> list[str]:
    """Returns the arguments of a Dockerfile's instructions of one name."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{name} ")]


def test_the_development_container_installs_as_the_readme_says() -> None:
    made = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))["postCreateCommand"]
    (tested,) = [
        line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith(f"{made} && ")
    ]
    assert ".venv/bin/pytest" in tested


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.timeout(900)
def test_the_image_runs_what_the_readme_shows(clone: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "environment", with_pip=True)
    (installed,), (entry,) = instructions("RUN"), instructions("ENTRYPOINT")
    shell(installed.replace("/source", str(clone)), tmp_path, tmp_path / "environment")
    command = shlex.join([*json.loads(entry), "compare", "--steps", "20", str(clone / "examples/digits/train.py")])
    assert "EQUAL" in shell(command, tmp_path, tmp_path / "environment")
    assert json.loads(*instructions("CMD"))[0] in shell(f"{json.loads(entry)[0]} --help", tmp_path, tmp_path / "environment")


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.timeout(900)
def test_the_release_builds_checks_and_starts_what_it_publishes(clone: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    workflow: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    venv.create(tmp_path / "environment", with_pip=True)
    shutil.copytree(clone, tmp_path / "clone")
    for step in workflow["jobs"]["build"]["steps"]:
        if "run" in step:
            shell(step["run"], tmp_path / "clone", tmp_path / "environment")
    assert len([*(tmp_path / "clone" / "dist").iterdir()]) == 2
