"""Replaces attributes of other packages: for the time of a ``with`` block, or for the life of the process."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import os
import types
from collections.abc import Callable
from typing import Any

CHECKED = "ESTIMATOR_BRIDGE_CHECK_PATCHES"
"""Environment variable of this project's tests: patterns of all names that may be replaced. A user's training never ends for a missing one."""
_CHECKED_PACKAGES = ("tensorflow", "tf_keras", "keras")  # tensorflow_estimator included


class replaced(contextlib.AbstractContextManager[None]):  # noqa: N801 -- as a function: hooks enter it at each step, and generators take time
    """While active, attributes of a module, class or object have other values.

    Args:
        owner: Module, class, function or object whose attributes change.
        attributes: New values by attribute name. The attributes must exist.

    Raises:
        AttributeError: An attribute does not exist.
        LookupError: The attribute belongs to TensorFlow or Keras and matches no pattern in ``CHECKED``, if that is set.

    Example:
        >>> import math
        >>> with replaced(math, pi=3):
        ...     math.pi
        3
    """

    def __init__(self, owner: Any, /, **attributes: Any) -> None:
        self._owner, self._attributes = owner, attributes
        self._restores: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        if self._restores:
            raise RuntimeError("It is active already.")
        try:
            for name, value in self._attributes.items():
                self._restores.append(replace(self._owner, name, value))
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            while self._restores:
                self._restores.pop()()
        finally:
            if self._restores:  # one could not be restored; the others are
                self.__exit__()


def preceded(owner: Any, /, **functions: Callable[..., object]) -> contextlib.AbstractContextManager[None]:
    """While active, methods of a class or functions of a module call another function first, with the same arguments.

    Args:
        owner: Module, class, function or object whose attributes change.
        functions: Functions to call first, by the method's name; what they raise comes through.

    Example:
        >>> import math
        >>> with preceded(math, sqrt=lambda x: print("sqrt of", x)):
        ...     math.sqrt(4)
        sqrt of 4
        2.0
    """
    return replaced(owner, **{name: _preceded(getattr(owner, name), function) for name, function in functions.items()})


def _preceded(original: Callable[..., Any], function: Callable[..., object]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        return original(*args, **kwargs)

    return call


def wrapped(owner: Any, /, **functions: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
    """While active, methods of a class or functions of a module are called by other functions, or not at all.

    Args:
        owner: Module, class, function or object whose attributes change.
        functions: Functions by the method's name. Each gets the method that it wraps, then the arguments of the call.

    Example:
        >>> import math
        >>> with wrapped(math, sqrt=lambda sqrt, x: -sqrt(x)):
        ...     math.sqrt(4)
        -2.0
    """
    return replaced(owner, **{name: _wrapped(getattr(owner, name), function) for name, function in functions.items()})


def _wrapped(original: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(original, *args, **kwargs)

    return call


def wrap(owner: Any, /, **functions: Callable[..., Any]) -> None:
    """Does for the life of the process what ``wrapped`` does for a time.

    Args:
        owner: Module, class, function or object whose attributes change.
        functions: Functions by the method's name. Each gets the method that it wraps, then the arguments of the call.
    """
    for name, function in functions.items():
        replace(owner, name, _wrapped(getattr(owner, name), function))


def replace(owner: Any, name: str, value: Any) -> Callable[[], None]:
    """Gives an attribute another value.

    Args:
        owner: Module, class, function or object whose attributes change.
        name: Attribute name.
        value: New value.

    Returns:
        A function that restores the former value.

    Raises:
        AttributeError: The attribute does not exist.
        LookupError: The attribute belongs to TensorFlow or Keras and matches no pattern in ``CHECKED``, if that is set.
    """
    if patterns := os.environ.get(CHECKED):
        path = f"{path_of(owner)}.{name}"
        if path.startswith(_CHECKED_PACKAGES) and not any(fnmatch.fnmatchcase(path, one) for one in patterns.split()):
            raise LookupError(f"{path} is patched, but {CHECKED} does not list it")
    is_own = name in vars(owner) or isinstance(owner, types.FunctionType)  # a function's __defaults__ are not in vars()
    before = vars(owner)[name] if name in vars(owner) else getattr(owner, name)  # vars() keeps a staticmethod as it is
    setattr(owner, name, value)

    def restore() -> None:
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)

    return restore


def path_of(owner: Any) -> str:
    """Returns the path of a module, class or function; for any other object, the path of its class.

    Example:
        >>> from collections import OrderedDict
        >>> path_of(contextlib), path_of(OrderedDict), path_of(OrderedDict())
        ('contextlib', 'collections.OrderedDict', 'collections.OrderedDict')
    """
    if isinstance(owner, types.ModuleType):
        return owner.__name__
    named = owner if isinstance(owner, (type, types.FunctionType)) else type(owner)
    return f"{named.__module__}.{named.__qualname__}"
