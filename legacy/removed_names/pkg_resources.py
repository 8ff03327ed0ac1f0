"""The parts of ``pkg_resources`` that scripts use, over importlib; setuptools dropped it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

DistributionNotFound = importlib.metadata.PackageNotFoundError


class VersionConflict(Exception):  # noqa: N818 -- setuptools' name
    """An installed version is not the one that is required."""


class Distribution(NamedTuple):
    """An installed distribution."""

    project_name: str
    version: str

    @property
    def key(self) -> str:
        """Its name in lower case."""
        return self.project_name.lower()

    @property
    def parsed_version(self) -> Version:
        """Its version, to compare."""
        return Version(self.version)


def parse_version(version: str) -> Version:
    """A version that compares as versions do."""
    return Version(version)


def get_distribution(dist: str) -> Distribution:
    """An installed distribution by name or requirement.

    Raises:
        DistributionNotFound: it is not installed.
        VersionConflict: it is, in another version.
    """
    requirement = Requirement(dist)
    found = Distribution(requirement.name, importlib.metadata.version(requirement.name))
    if not requirement.specifier.contains(found.version, prereleases=True):
        raise VersionConflict(f"{found.project_name} {found.version} is installed, {dist} is required")
    return found


def require(*requirements: str) -> list[Distribution]:
    """The distributions of requirements, as ``get_distribution`` finds them."""
    return [get_distribution(one) for one in requirements]


def resource_filename(package_or_requirement: str, resource_name: str) -> str:
    """The path of a file in a package."""
    return str(_folder(package_or_requirement) / resource_name)


def resource_exists(package_or_requirement: str, resource_name: str) -> bool:
    """Whether a package has a file."""
    return (_folder(package_or_requirement) / resource_name).exists()


def resource_isdir(package_or_requirement: str, resource_name: str) -> bool:
    """Whether a package has a folder."""
    return (_folder(package_or_requirement) / resource_name).is_dir()


def resource_listdir(package_or_requirement: str, resource_name: str) -> list[str]:
    """The names in a package's folder."""
    return [path.name for path in (_folder(package_or_requirement) / resource_name).iterdir()]


def resource_string(package_or_requirement: str, resource_name: str) -> bytes:
    """The bytes of a package's file."""
    return (_folder(package_or_requirement) / resource_name).read_bytes()


def resource_stream(package_or_requirement: str, resource_name: str) -> Any:
    """A package's file, open for reading bytes."""
    return (_folder(package_or_requirement) / resource_name).open("rb")


def safe_name(name: str) -> str:
    """A distribution's name with dashes for what is no letter, digit or dot."""
    return re.sub("[^A-Za-z0-9.]+", "-", name)


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.origin).parent
