"""Every way to install gives the same package; an editable one leaves a clean checkout."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from tests.packaging.conftest import ROOT, Distributions, Environment, run

FOLDERS = ("legacy", "modern", "compat")
WHERE = Path(__file__).parent / "programs" / "print_places.py"
TOP_LEVEL = Path(__file__).parent / "programs" / "print_top_level.py"


@pytest.fixture
def checkout(clone: Path, tmp_path: Path) -> Path:
    """A separate clone for an install that writes into it."""
    return Path(shutil.copytree(clone, tmp_path / "checkout"))


def imported_from(environment: Environment) -> dict[str, Path]:
    found: dict[str, str] = json.loads(environment.run(WHERE).splitlines()[-1])
    return {name: Path(file) for name, file in found.items()}


def assert_inside_the_environment(environment: Environment) -> None:
    for name, file in imported_from(environment).items():
        assert file.is_relative_to(environment.folder), f"{name} came from {file}"
        assert file.parent.name == name
        assert file.parent.parent.name == "estimator_bridge"


def test_a_wheel_installs(environment: Environment, distributions: Distributions) -> None:
    environment.install(distributions.wheel)
    assert_inside_the_environment(environment)
    assert environment.run(TOP_LEVEL).strip() == "[]"


def test_an_sdist_installs(environment: Environment, distributions: Distributions) -> None:
    environment.install(distributions.sdist)
    assert_inside_the_environment(environment)


def test_a_regular_install_from_a_checkout(environment: Environment, checkout: Path) -> None:
    environment.install(checkout)
    assert_inside_the_environment(environment)
    assert not [folder for folder in FOLDERS if (checkout / "src" / "estimator_bridge" / folder).exists()]


def test_an_editable_install_follows_the_checkout_and_leaves_it_clean(environment: Environment, checkout: Path) -> None:
    environment.install("--editable", checkout)
    package = checkout / "src" / "estimator_bridge"
    assert imported_from(environment) == {name: package / name / "__init__.py" for name in FOLDERS}
    assert environment.run(TOP_LEVEL).strip() == "[]"
    for folder in FOLDERS:
        assert (package / folder).is_symlink()
        assert (package / folder).resolve() == checkout / folder
        (checkout / folder / "written_later.py").write_text("HERE = True\n", encoding="utf-8")
        environment.run("-c", f"import estimator_bridge.{folder}.written_later")
        (checkout / folder / "written_later.py").unlink()
    assert run("git", "ls-files", "--others", "--exclude-standard", cwd=checkout) == ""


def test_an_sdist_built_beside_an_editable_install_holds_no_links(environment: Environment, checkout: Path) -> None:
    environment.install("--editable", checkout)
    outer = (environment.python, "-m", "build", "--no-isolation", "--wheel", "--outdir", environment.folder, checkout)
    run(*outer, cwd=checkout)
    environment.install(next(environment.folder.glob("*.whl")))
    assert_inside_the_environment(environment)


@pytest.fixture
def hook() -> ModuleType:
    """hatch_build.py as a module."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_outdated_link_is_replaced_and_a_right_one_kept(hook: ModuleType, tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "folder").mkdir()
    link.symlink_to("elsewhere")
    hook.link_folder(link, tmp_path / "folder")
    assert link.readlink() == Path("folder")
    before = link.lstat().st_ino
    hook.link_folder(link, tmp_path / "folder")
    assert link.lstat().st_ino == before


def test_a_users_folder_in_place_of_a_link_is_not_touched(hook: ModuleType, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.mkdir()
    with pytest.raises(FileExistsError, match="is in the way"):
        hook.link_folder(link, tmp_path / "folder")
    assert link.is_dir()


def test_the_requirements_without_tensorflow_are_all_but_those_that_bring_it() -> None:
    listed = (ROOT / "requirements" / "without-tensorflow.txt").read_text(encoding="utf-8").splitlines()
    found = {str(Requirement(line)) for line in listed if not line.startswith("#")}
    needed = {
        str(Requirement(line)) for line in importlib.metadata.requires("estimator-bridge") or () if "extra ==" not in line
    }
    assert {line for line in needed if not line.startswith(("tensorflow<", "tensorflow>", "tf-keras"))} == found


@pytest.mark.slow
@pytest.mark.once
def test_constraints_keep_the_installed_tensorflow_as_it_is(tmp_path: Path) -> None:
    """The lines of docs/how-to/install.md, without an index and without effect: pip only resolves."""
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```sh\n(pip freeze .*?)```", page, flags=re.DOTALL)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {"PATH": path, "PIP_NO_INDEX": "1", "PIP_DRY_RUN": "1"}

    def install(package: str) -> str:
        return run("bash", "-euo", "pipefail", "-c", lines.replace("PACKAGE", package), cwd=tmp_path, environment=variables)

    install("numpy")
    constraints = (tmp_path / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert {"tensorflow", "keras"} <= {re.split("[=-]", line)[0] for line in constraints}
    with pytest.raises(AssertionError, match=r"The user requested \(constraint\) numpy=="):
        install("'numpy<1'")


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("has_tensorflow", [True, False])
def test_a_tensorflow_of_another_name_stays_the_only_one(tmp_path: Path, has_tensorflow: bool) -> None:
    """The lines of docs/how-to/install.md, from a package index; without TensorFlow, what only reads works, and the rest says what to do."""
    venv.create(tmp_path / "environment", with_pip=True)
    python, quiet = tmp_path / "environment" / "bin" / "python", ["-m", "pip", "install", "--quiet", "--no-compile"]
    run(
        python,
        *quiet,
        *(["tensorflow-cpu>=2.21,<2.22"] if has_tensorflow else []),
        "-r",
        ROOT / "requirements/without-tensorflow.txt",
        cwd=tmp_path,
    )
    run(python, *quiet, "--no-deps", *(["tf-keras>=2.21,<2.22"] if has_tensorflow else []), ROOT, cwd=tmp_path)
    names = {one.partition("==")[0].replace("_", "-") for one in run(python, "-m", "pip", "freeze", cwd=tmp_path).splitlines()}
    assert "tensorflow" not in names
    assert ("tensorflow-cpu" in names) is has_tensorflow
    script = ROOT / "tests" / "data" / "small_job.py"
    bridge: list[str | Path] = [python, "-m", "estimator_bridge"]
    run(*bridge, "convert", "source", "--out", "new.py", ROOT / "tests/data/to_keras/by_mode.py", cwd=tmp_path)
    assert (tmp_path / "new.py").exists()
    old, other = (write_tensors(tmp_path / name, {"w": [[1.0, 2.0]], "global_step": 7}) for name in ("old", "other"))
    (tmp_path / "session.pbtxt").write_text("allow_soft_placement: true\n")
    for reading in (["check", script], ["inspect", "--diff", old, other], ["convert", "config", "session.pbtxt"]):
        run(*bridge, *reading, cwd=tmp_path)
    if has_tensorflow:
        for path in ("legacy", "modern"):
            run(*bridge, "run", "--path", path, script, cwd=tmp_path)
    else:
        ended = subprocess.run(
            [*map(str, bridge), "run", str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
        )
        assert (ended.returncode, "pip install tensorflow" in ended.stderr) == (2, True)
