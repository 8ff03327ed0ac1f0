"""Every way to install gives the same package; an editable one leaves a clean checkout."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

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
