"""The files in a release and their places."""

from __future__ import annotations

import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

from tests.packaging.conftest import Distributions

FOLDERS = ("legacy", "modern", "compat")


def names_in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources_of(clone: Path, folder: str) -> set[str]:
    return {path.relative_to(clone).as_posix() for path in (clone / folder).rglob("*.py")}


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


@pytest.mark.parametrize("folder", FOLDERS)
def test_wheel_holds_every_source_of_the_folder_inside_the_package(
    clone: Path, distributions: Distributions, folder: str
) -> None:
    sources = sources_of(clone, folder)
    assert sources
    assert {f"estimator_bridge/{source}" for source in sources} <= names_in_wheel(distributions.wheel)


def test_wheel_installs_nothing_but_the_package_and_its_metadata(distributions: Distributions) -> None:
    top_level = {PurePosixPath(name).parts[0] for name in names_in_wheel(distributions.wheel)}
    assert {name for name in top_level if not name.endswith(".dist-info")} == {"estimator_bridge"}


def test_wheel_from_the_sdist_is_the_wheel_from_the_tree(distributions: Distributions) -> None:
    assert names_in_wheel(distributions.wheel) == names_in_wheel(distributions.wheel_from_tree)


def test_wheel_ships_types_and_messages_and_no_build_leftovers(distributions: Distributions) -> None:
    names = names_in_wheel(distributions.wheel)
    assert {"estimator_bridge/py.typed", "estimator_bridge/cli/explain/messages.json"} <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


@pytest.mark.parametrize("folder", FOLDERS)
def test_sdist_holds_each_source_once_where_it_stands(clone: Path, distributions: Distributions, folder: str) -> None:
    with tarfile.open(distributions.sdist) as archive:
        members = {PurePosixPath(member.name).relative_to(archive.getnames()[0].split("/")[0]) for member in archive}
        assert not [member.name for member in archive if member.issym() or member.islnk()]
    names = {member.as_posix() for member in members}
    assert sources_of(clone, folder) <= names
    assert not [name for name in names if name.startswith(f"src/estimator_bridge/{folder}")]


def test_metadata_names_the_version_the_licence_and_the_console_script(distributions: Distributions) -> None:
    metadata = metadata_of(distributions.wheel)
    version = metadata["Version"]
    assert distributions.wheel.name.startswith(f"estimator_bridge-{version}-py3-none-any")
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == "<3.14,>=3.10"
    with zipfile.ZipFile(distributions.wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "estimator-bridge = estimator_bridge.cli.main:main" in archive.read(name).decode()
