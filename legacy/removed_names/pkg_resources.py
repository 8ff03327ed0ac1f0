"""The functions of ``pkg_resources`` that scripts use, built on importlib; setuptools dropped the module."""

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

DistributionNotFound = importlib.metadata.PackageNotFoundError


class VersionConflict(Exception):  # noqa: N818 -- setuptools' name
    """An installed version differs from the required one."""


class Distribution(NamedTuple):
    """An installed distribution."""

    project_name: str
    version: str

    @property
    def key(self) -> str:
        """The name in lower case."""
        return self.project_name.lower()

    @property
    def parsed_version(self) -> Version:
        """The version as an object that can be compared."""
        return Version(self.version)


def parse_version(version: str) -> Version:
    """Returns a version as an object that can be compared."""
    return Version(version)


def get_distribution(dist: str) -> Distribution:
    """Returns an installed distribution by name or requirement.

    Raises:
        DistributionNotFound: The distribution is not installed.
        VersionConflict: Another version is installed.
    """
    requirement = Requirement(dist)
    found = Distribution(requirement.name, importlib.metadata.version(requirement.name))
    if not requirement.specifier.contains(found.version, prereleases=True):
        raise VersionConflict(f"{found.project_name} {found.version} is installed, {dist} is required")
    return found


def require(*requirements: str) -> list[Distribution]:
    """Returns the distributions of several requirements."""
    return [get_distribution(one) for one in requirements]


def resource_filename(package_or_requirement: str, resource_name: str) -> str:
    """Returns the path of a file in a package."""
    return str(_folder(package_or_requirement) / resource_name)


def resource_exists(package_or_requirement: str, resource_name: str) -> bool:
    """Returns True if a package has a file."""
    return (_folder(package_or_requirement) / resource_name).exists()


def resource_isdir(package_or_requirement: str, resource_name: str) -> bool:
    """Returns True if a package has a folder."""
    return (_folder(package_or_requirement) / resource_name).is_dir()


def resource_listdir(package_or_requirement: str, resource_name: str) -> list[str]:
    """Returns the names in a folder of a package."""
    return [path.name for path in (_folder(package_or_requirement) / resource_name).iterdir()]


def resource_string(package_or_requirement: str, resource_name: str) -> bytes:
    """Returns the bytes of a file in a package."""
    return (_folder(package_or_requirement) / resource_name).read_bytes()


def resource_stream(package_or_requirement: str, resource_name: str) -> Any:
    """Opens a file in a package for reading bytes."""
    return (_folder(package_or_requirement) / resource_name).open("rb")


def safe_name(name: str) -> str:
    """Returns a distribution's name with dashes for all characters but letters, digits and dots."""
    return re.sub("[^A-Za-z0-9.]+", "-", name)


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.origin).parent
