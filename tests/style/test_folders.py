"""Folders stay small enough to be read as a list, and the tests' folders are the product's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.style.product import HOMES, PACKAGE, ROOT, modules

MOST_MODULES = 12
TABLES = frozenset(
    f"{PACKAGE}.{name}"
    for name in (
        "compat.config.tables",
        "legacy.contrib",
        "legacy.restored",
        "modern.callbacks",
        "modern.canned.columns",
    )
)
"""Packages of modules of one kind, one for each optimizer, config, symbol, hook or column."""
OF_THEIR_OWN = frozenset({"data", "examples", "golden", "integration", "packaging", "style", "warm"})
"""Folders of tests that are about no single package."""


def test_no_folder_lists_more_modules_than_a_reader_takes_in() -> None:
    packages = [module for module, path in modules().items() if path.name == "__init__.py"]
    sizes = Counter(module.rpartition(".")[0] for module in modules() if module not in packages)
    assert set(packages) >= TABLES, "a package has moved"
    assert not {package: size for package, size in sizes.items() if size > MOST_MODULES and package not in TABLES}


def test_each_folder_of_tests_is_named_for_a_folder_of_the_product() -> None:
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    strays = [
        folder.as_posix()
        for folder in sorted(folders)
        if folder.parts and folder.parts[0] not in OF_THEIR_OWN and not is_of_the_product(folder)
    ]
    assert not strays


def is_of_the_product(folder: Path) -> bool:
    """Returns True if a package lies at this path below the package, in the source tree."""
    home = HOMES.get(f"{PACKAGE}.{folder.parts[0]}")
    path = home.joinpath(*folder.parts[1:]) if home else HOMES[PACKAGE] / folder
    return (path / "__init__.py").is_file()
