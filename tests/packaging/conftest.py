"""Fixtures: a new copy of the tree, its distributions, and empty virtual environments, all without a network."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None, deadline: float = 240) -> str:
    """Returns the standard output of a command, which must succeed within a deadline in seconds."""
    # The bridge of the running environment must not leak into the one under test.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=inherited | (environment or {}),
        capture_output=True,
        text=True,
        timeout=deadline,
        check=False,
    )
    assert result.returncode == 0, f"{command} exited with {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def tracked_files() -> tuple[Path, ...]:
    """Every file that a commit of the working tree would hold, relative to the root."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    return tuple(Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file())


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree as in a new clone: no links, no caches, no build outputs."""
    folder = tmp_path_factory.mktemp("clone")
    for file in tracked_files():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, folder / file)
    run("git", "init", "--quiet", cwd=folder)
    run("git", "add", "--all", cwd=folder)
    return folder


@dataclasses.dataclass(frozen=True)
class Distributions:
    """A release's files, and a wheel that is built from the tree directly."""

    sdist: Path
    wheel: Path
    wheel_from_tree: Path


@pytest.fixture(scope="session")
def distributions(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Sdist, the wheel built from it, and the wheel built from the tree."""
    released, direct = tmp_path_factory.mktemp("released"), tmp_path_factory.mktemp("direct")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir")
    run(*build, released, clone, cwd=clone)
    run(*build, direct, "--wheel", clone, cwd=clone)
    return Distributions(
        sdist=next(released.glob("*.tar.gz")),
        wheel=next(released.glob("*.whl")),
        wheel_from_tree=next(direct.glob("*.whl")),
    )


@dataclasses.dataclass(frozen=True)
class Environment:
    """A virtual environment that sees this one's packages but not its estimator_bridge."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def install(self, *arguments: str | Path) -> None:
        """Runs pip install without dependencies, build isolation or a package index."""
        pip = (sys.executable, "-m", "pip", "--python", self.python, "install", "--no-deps", "--no-index", "--quiet")
        run(*pip, "--no-build-isolation", "--force-reinstall", *arguments, cwd=self.folder)

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Returns the standard output of the interpreter."""
        return run(self.python, *arguments, cwd=cwd or self.folder)

    def console_script(self, arguments: Sequence[str | Path], cwd: Path) -> str:
        """Returns the standard output of ``estimator-bridge``."""
        return run(self.folder / "bin" / "estimator-bridge", *arguments, cwd=cwd)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Returns an empty environment.

    A .pth file names this environment's packages: unlike --system-site-packages that works from inside an environment, and the
    .pth files in there, an editable install's among them, are not read again.
    """
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return Environment(folder)
