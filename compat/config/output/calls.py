"""Calls as data: a converter prints them as source, ``modern.config`` makes them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

_WIDTH = 120


@dataclasses.dataclass(frozen=True, repr=False)
class Name:
    """Dotted name of a variable in the printed source.

    Example:
        >>> Name("validation_data")
        validation_data
    """

    dotted: str

    def __repr__(self) -> str:
        return self.dotted


@dataclasses.dataclass(frozen=True, repr=False)
class Call:
    """Call of a function or class; arguments may contain names and further calls.

    Attributes:
        function: Dotted name.
        arguments: Keyword arguments.
        positional: Positional arguments.

    Example:
        >>> Call("tf.train.Checkpoint", {"model": Name("model")})
        tf.train.Checkpoint(model=model)
    """

    function: str
    arguments: Mapping[str, Any]
    positional: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"{self.function}({', '.join(f'{before}{value!r}' for before, value in self.parts())})"

    def parts(self) -> list[tuple[str, Any]]:
        """Returns each argument's value with the ``keyword=`` before it."""
        return [*(("", value) for value in self.positional), *((f"{key}=", value) for key, value in self.arguments.items())]

    def nested(self) -> Iterator[Call | Name]:
        """Yields this call, and the calls and names inside it."""
        yield self
        for _, value in self.parts():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, Call):
                    yield from one.nested()
                elif isinstance(one, Name):
                    yield one


def given(**arguments: Any) -> dict[str, Any]:
    """Returns the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


def make(value: Any, scope: Mapping[str, Any]) -> Any:
    """Makes what a call describes.

    Args:
        value: A call, a name, a list or mapping of them, or a plain value.
        scope: Values of the names' first parts.

    Returns:
        The object; a plain value as it is.

    Example:
        >>> make(Call("math.hypot", {}, (3, Name("x"))), {"math": __import__("math"), "x": 4})
        5.0
    """
    if isinstance(value, Name):
        first, *inner = value.dotted.split(".")
        return functools.reduce(getattr, inner, scope[first])
    if isinstance(value, list):
        return [make(one, scope) for one in value]
    if isinstance(value, dict):
        return {key: make(one, scope) for key, one in value.items()}
    if isinstance(value, Call):
        return make(Name(value.function), scope)(*make(list(value.positional), scope), **make(dict(value.arguments), scope))
    return value


def source_lines(value: Any, before: str = "", after: str = "") -> Iterator[str]:
    """Prints a call as source, a long one with an argument a line.

    Args:
        value: A call, a list of calls, or a plain value.
        before: Text before the first line, with its indentation.
        after: Text after the last line.

    Yields:
        Lines.

    Example:
        >>> list(source_lines(Call("tf.train.Checkpoint", {"model": Name("model")}), "checkpoint = "))
        ['checkpoint = tf.train.Checkpoint(model=model)']
    """
    line = f"{before}{value!r}{after}"
    if len(line) <= _WIDTH or not isinstance(value, Call | list):
        yield line
        return
    opening, closing, parts = (
        (f"{value.function}(", ")", value.parts()) if isinstance(value, Call) else ("[", "]", [("", one) for one in value])
    )
    indent = " " * (len(before) - len(before.lstrip()))
    yield before + opening
    for name, one in parts:
        yield from source_lines(one, f"{indent}    {name}", ",")
    yield indent + closing + after
