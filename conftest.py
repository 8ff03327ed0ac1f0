"""Pytest at the root: the three folders are collected once, as ``estimator_bridge.legacy`` and so on, under src."""

from __future__ import annotations

import importlib.metadata

collect_ignore = ["legacy", "modern", "compat", "hatch_build.py", "docs", "examples", "benchmarks"]

# Scripts that tests run: importing them to look for examples in docstrings would run them.
collect_ignore += ["tests/data", "tests/legacy/as_main.py", "tests/parity/broken_side.py"]

# On TensorFlow 2.15 nothing is restored: the examples in those modules' docstrings show what only later versions need.
if importlib.metadata.version("tensorflow").startswith("2.15."):
    collect_ignore.append("src/estimator_bridge/legacy/restored")
