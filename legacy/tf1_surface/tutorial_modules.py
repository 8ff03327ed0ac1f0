"""The module ``tensorflow.examples.tutorials.mnist.input_data``, which many first scripts import."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

_PACKAGES = ("tensorflow.examples", "tensorflow.examples.tutorials", "tensorflow.examples.tutorials.mnist")


@contextlib.contextmanager
def example_modules() -> Iterator[None]:
    """While active, the module can be imported; it is ``legacy.contrib.mnist``."""
    from estimator_bridge.legacy.contrib import mnist

    modules: dict[str, types.ModuleType] = {}
    for name in _PACKAGES:
        modules[name] = types.ModuleType(name)
        modules[name].__path__ = []
    modules[f"{_PACKAGES[-1]}.input_data"] = mnist
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        if parent in modules:
            setattr(modules[parent], last, module)
    real: Any = sys.modules["tensorflow"]
    sys.modules.update(modules)
    real.examples = modules[_PACKAGES[0]]
    try:
        yield
    finally:
        del real.examples
        for name in modules:
            del sys.modules[name]
