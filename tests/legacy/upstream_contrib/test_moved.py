"""Each row of the table of what moved leads to something on the installed TensorFlow."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from estimator_bridge import legacy
from estimator_bridge.legacy.upstream_contrib import moved

legacy.install()


@pytest.mark.parametrize("target", sorted({one for one in moved.MODULES.values() if "_keras" not in one}))
def test_modules_exist(target: str) -> None:
    assert importlib.util.find_spec(target) is not None


@pytest.mark.parametrize(("name", "target"), sorted(moved.NAMES.items()))
def test_names_exist_where_they_are_or_where_they_moved(name: str, target: str) -> None:
    found = []
    for path in (name, target):
        module, _, attribute = path.partition(":")
        if importlib.util.find_spec(module) is not None:
            found.append(hasattr(importlib.import_module(module), attribute))
    assert any(found)


def test_the_longest_row_decides() -> None:
    assert moved.moved("tensorflow.python.keras.engine.training_utils.Aggregator").startswith(
        "tensorflow.contrib._keras.engine.training_utils_v1"
    )
    assert moved.moved("tensorflow.python.ops.array_ops.reshape") == "tensorflow.python.ops.array_ops.reshape"
