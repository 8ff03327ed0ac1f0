"""Pytest at the root: the three folders are collected once, as ``estimator_bridge.legacy`` and so on, under src."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

collect_ignore = ["legacy", "modern", "compat", "hatch_build.py", "docs", "examples", "benchmarks"]

# These load TensorFlow's Keras, which legacy.install() has to settle first: tests/legacy/contrib/test_examples.py runs theirs.
collect_ignore.append("src/estimator_bridge/legacy/contrib")

# For the interpreter of TensorFlow 1 alone.
collect_ignore.append("src/estimator_bridge/parity/reference/recorder.py")

# On TensorFlow 2.15 nothing is restored: the examples in those modules' docstrings show what only later versions need.
if importlib.metadata.version("tensorflow").startswith("2.15."):
    collect_ignore.append("src/estimator_bridge/legacy/restored")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Scripts that tests run stay closed: importing them to look for examples in docstrings would run them."""
    inside = Path(__file__).parent / "tests" in collection_path.parents
    is_script = collection_path.suffix == ".py" and not collection_path.name.startswith(("test_", "conftest", "__init__"))
    return True if inside and is_script else None
