"""Pytest at the root: the three folders are collected once, as ``estimator_bridge.legacy`` and so on, under src."""

collect_ignore = ["legacy", "modern", "compat", "hatch_build.py"]
