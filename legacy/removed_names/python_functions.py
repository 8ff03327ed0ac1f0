"""Functions that Python's library dropped without a successor."""

from __future__ import annotations

import importlib.util
import inspect
import math
import platform
import plistlib
import unittest
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

string_types = (str,)


class ArgSpec(NamedTuple):
    """The result of ``getargspec``."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: Callable[..., Any]) -> ArgSpec:
    """Returns the names and defaults of a function's arguments, bound ones included."""
    full = inspect.getfullargspec(func)
    if full.kwonlyargs or full.annotations:
        raise ValueError(
            "Function has keyword-only parameters or annotations, use inspect.signature() API which can support them"
        )
    return ArgSpec(full.args, full.varargs, full.varkw, full.defaults)


def gcd(a: Any, b: Any) -> Any:
    """Returns the greatest common divisor with the sign of b, or of a if b is zero."""
    if isinstance(a, int) and isinstance(b, int):
        return -math.gcd(a, b) if (b or a) < 0 else math.gcd(a, b)
    while b:
        a, b = b, a % b
    return a


def find_loader(name: str, path: str | None = None) -> Any:
    """Returns the loader of a module, or None."""
    spec = importlib.util.find_spec(name)
    return spec and spec.loader


def linux_distribution(*args: Any, **kwargs: Any) -> tuple[str, str, str]:
    """Returns name, version and code name of the Linux distribution, as far as it gives them."""
    try:
        fields = platform.freedesktop_os_release()
    except OSError:
        fields = {}
    return fields.get("NAME", ""), fields.get("VERSION_ID", ""), fields.get("VERSION_CODENAME", "")


def read_plist(pathOrFile: Any) -> Any:  # noqa: N803 -- Python's name
    """Reads a property list from a path or an open file."""
    if isinstance(pathOrFile, str):
        return plistlib.loads(Path(pathOrFile).read_bytes())
    return plistlib.load(pathOrFile)


def write_plist(value: Any, pathOrFile: Any) -> None:  # noqa: N803
    """Writes a property list to a path or an open file."""
    if isinstance(pathOrFile, str):
        Path(pathOrFile).write_bytes(plistlib.dumps(value))
    else:
        plistlib.dump(value, pathOrFile)


def set_default_encoding(encoding: str) -> None:
    """Does nothing: text is Unicode, and UTF-8 is the default."""


def string_join(words: Iterable[str], sep: str = " ") -> str:
    """Joins words with a separator."""
    return sep.join(words)


def find_test_cases(module: Any, prefix: str = "test") -> unittest.TestSuite:
    """Returns a suite of a module's tests."""
    return _loader(prefix).loadTestsFromModule(module)


def make_suite(testCaseClass: type[unittest.TestCase], prefix: str = "test") -> unittest.TestSuite:  # noqa: N803
    """Returns a suite of a class's tests."""
    return _loader(prefix).loadTestsFromTestCase(testCaseClass)


def _loader(prefix: str) -> unittest.TestLoader:
    loader = unittest.TestLoader()
    loader.testMethodPrefix = prefix
    return loader
