"""Check of plain values against annotations; a file's lists become the fields' tuples."""

from __future__ import annotations

import contextlib
import math
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from estimator_bridge.errors import BridgeError


def conform(value: Any, annotation: Any, name: str) -> Any:
    """Returns a value as its field holds it.

    Args:
        value: Value from JSON, TOML or Python.
        annotation: Type of the field.
        name: Name of the field for errors.

    Returns:
        The value; a list becomes a tuple and an integer a float if the field requires it.

    Raises:
        BridgeError: The value has the wrong type.

    Example:
        >>> conform([[100, 200]], tuple[tuple[float, ...], ...], "limits")
        ((100.0, 200.0),)
    """
    try:
        return _conform(value, annotation)
    except (TypeError, OverflowError):
        raise BridgeError(
            f"{name} has a value of the wrong type.", expected=_type_text(annotation), received=repr(value)
        ) from None


def _conform(value: Any, annotation: Any) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        for choice in arguments:
            with contextlib.suppress(TypeError, OverflowError):
                return _conform(value, choice)
        raise TypeError
    if origin is typing.Literal:
        return _check(value, value in arguments)
    if origin is tuple:
        _check(value, isinstance(value, list | tuple))
        return tuple(_conform(one, arguments[0]) for one in value)
    if origin is Mapping:
        _check(value, isinstance(value, Mapping))
        return {_conform(key, arguments[0]): _conform(one, arguments[1]) for key, one in value.items()}
    return _scalar(value, annotation)


def _scalar(value: Any, annotation: Any) -> Any:
    if annotation is Any:
        return value
    if annotation is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(_check(value, math.isfinite(value)))  # Python code and JSON cannot write others
    return _check(value, isinstance(value, annotation) and isinstance(value, bool) == (annotation is bool))


def _check(value: Any, fits: bool) -> Any:
    if not fits:
        raise TypeError
    return value


def _type_text(annotation: Any) -> str:
    if isinstance(annotation, type):
        return annotation.__name__
    return re.sub(r"typing\.|collections\.abc\.| \| None", "", str(annotation))
