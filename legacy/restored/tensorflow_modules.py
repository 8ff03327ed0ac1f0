"""TensorFlow's modules: the public ones, which are ``tf`` and each of its compat namespaces, and places for removed ones."""

import importlib
import importlib.util
import re
import sys
from types import ModuleType

# ``import tensorflow.compat.v1`` makes a second module of the same file beside ``tensorflow._api.v2.compat.v1``, and each
# compat namespace has compat namespaces in it. Scripts may import any of them as ``tf``.
_PUBLIC = re.compile(r"tensorflow((\._api\.v2)?(\.compat\.v[12])+)?")


def public_modules() -> dict[str, ModuleType]:
    """Returns the public modules that are loaded.

    Returns:
        Modules by their full names.

    Example:
        >>> import tensorflow
        >>> "tensorflow" in public_modules()
        True
    """
    return {name: module for name, module in list(sys.modules.items()) if _PUBLIC.fullmatch(name)}


def load_public_modules() -> dict[str, ModuleType]:
    """Loads TensorFlow and both compat namespaces under the names that scripts import.

    Returns:
        Modules by their full names.

    Example:
        >>> sorted(load_public_modules())[0]
        'tensorflow'
    """
    for name in ("tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2"):
        importlib.import_module(name)
    return public_modules()


def api_version(name: str) -> int:
    """Returns the API version of a public module.

    Args:
        name: Key of ``public_modules()``.

    Returns:
        1 or 2.

    Example:
        >>> api_version("tensorflow"), api_version("tensorflow.compat.v1")
        (2, 1)
    """
    return 1 if name.endswith(".v1") else 2


def place(name: str, module: ModuleType) -> None:
    """Makes ``module`` importable as ``name``, unless this TensorFlow still has a module of that name.

    Args:
        name: Full name of TensorFlow's module; its parent package must exist.
        module: Module that takes its place.

    Example:
        >>> import json
        >>> place("json.decoder", json)
        >>> json.decoder is json
        False
    """
    if name not in sys.modules and importlib.util.find_spec(name) is None:
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        setattr(importlib.import_module(parent), child, module)
