"""The module ``tensorflow.examples.tutorials.mnist.input_data``, which many first scripts import."""

import contextlib
import sys
import types
from collections.abc import Iterator

_PACKAGES = ("tensorflow.examples", "tensorflow.examples.tutorials", "tensorflow.examples.tutorials.mnist")


@contextlib.contextmanager
def example_modules() -> Iterator[None]:
    """While active, the module can be imported; it is ``mnist_reader``."""
    from estimator_bridge.legacy.tf1_surface import mnist_reader

    modules = {name: types.ModuleType(name) for name in _PACKAGES}
    for package in modules.values():
        package.__path__ = []
    modules[f"{_PACKAGES[-1]}.input_data"] = mnist_reader
    sys.modules.update(modules)
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, module)
    try:
        yield
    finally:
        delattr(sys.modules["tensorflow"], "examples")
        for name in modules:
            del sys.modules[name]
