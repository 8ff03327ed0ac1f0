"""JSON with positions: where a broken file breaks, and where each key stands."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from estimator_bridge.errors import BridgeError

Path = tuple[str | int, ...]

_TOKEN = re.compile(r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<mark>[{}\[\],:])|(?P<other>[^\s{}\[\],:"]+))')


@dataclasses.dataclass(frozen=True)
class Document:
    """A JSON object and where its parts stand.

    Attributes:
        value: what it says.
        places: path of keys and indices -> line and column, both from 1.
        source: its name for errors.
    """

    value: Mapping[str, Any]
    places: Mapping[Path, tuple[int, int]]
    source: str

    def where(self, path: Path) -> str:
        """``file, line 2, column 5`` of a path, or of the nearest part around it."""
        while path and path not in self.places:
            path = path[:-1]
        line, column = self.places.get(path, (1, 1))
        return f"{self.source}, line {line}, column {column}"

    def inside(self, key: str) -> Document:
        """The object of a key, with the places of its parts."""
        places = {path[1:]: place for path, place in self.places.items() if path[:1] == (key,)}
        return Document(self.value[key], places, self.source)


def read_object(text: str, source: str, expected: str = "a JSON object") -> Document:
    """Reads a JSON object.

    Args:
        text: of the file.
        source: its name for errors.
        expected: what the object should be.

    Returns:
        The object, with positions.

    Raises:
        BridgeError: with line and column, for broken JSON, another value than an object, or a key that is there twice.

    Example:
        >>> read_object('{"task": {"index": 0}}', "job.json").where(("task", "index"))
        'job.json, line 1, column 11'
    """
    try:
        value = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        lines = text.splitlines() or [""]
        raise BridgeError(
            f"{source}, line {error.lineno}, column {error.colno}: this is no JSON.",
            expected=expected,
            received=f"{error.msg}, in: {lines[min(error.lineno, len(lines)) - 1].strip() or 'an empty line'}",
            fix="Mend that line; a comma after the last element and single quotes are not JSON.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise BridgeError(
            f"{source}: this JSON cannot be read.",
            expected=expected,
            received=error,
            fix="Write a smaller number, or nest less.",
        ) from None
    _refuse_half_characters(text, value, source)
    if not isinstance(value, dict):
        raise BridgeError(
            f"{source}, line 1, column 1: this is no JSON object.", expected=expected, received=type(value).__name__
        )
    return Document(value, _places(text, source), source)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _refuse_half_characters(text: str, value: Any, source: str) -> None:
    """Half of a surrogate pair, which no file can hold."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        at = max(text.find(half), text.lower().find(f"\\u{ord(half):04x}"), 0)
        line, column = _line_column(text, at)
        raise BridgeError(
            f"{source}, line {line}, column {column}: half a character.", expected="a whole one", received=repr(half)
        ) from None


def _places(text: str, source: str) -> dict[Path, tuple[int, int]]:
    """Walks the tokens of JSON that is known to be well-formed."""
    places: dict[Path, tuple[int, int]] = {}
    stack: list[list[Any]] = []  # [path, next index or None in an object, current key]
    key_next = False
    for match in _TOKEN.finditer(text):
        token, start = match.group().strip(), match.start() + len(match.group()) - len(match.group().lstrip())
        if key_next and match["string"]:
            stack[-1][2] = json.loads(token)
            path = (*stack[-1][0], stack[-1][2])
            if path in places:
                _twice(path, places[path], _line_column(text, start), source)
            places[path] = _line_column(text, start)
            key_next = False
        elif token in {"}", "]"}:
            stack.pop()
            key_next = False
        elif token == ",":
            key_next = stack[-1][1] is None
            stack[-1][1] = None if key_next else stack[-1][1] + 1
        elif token != ":":
            path = _value_path(stack)
            places.setdefault(path, _line_column(text, start))
            if token in {"{", "["}:
                stack.append([path, None if token == "{" else 0, None])
                key_next = token == "{"
    return places


def _value_path(stack: list[list[Any]]) -> Path:
    if not stack:
        return ()
    outer, index, key = stack[-1]
    return (*outer, key if index is None else index)


def _twice(path: Path, first: tuple[int, int], again: tuple[int, int], source: str) -> None:
    raise BridgeError(
        f"{source}, line {again[0]}, column {again[1]}: {dotted(path)} is there twice.",
        expected="each key once",
        received=f"the first in line {first[0]}, column {first[1]}",
        fix="Drop one of them; JSON readers take the last in silence.",
    )


def _line_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def dotted(path: Path) -> str:
    """``cluster.worker[1]`` of a path.

    Args:
        path: keys and indices.

    Returns:
        For readers.

    Example:
        >>> dotted(("cluster", "worker", 1))
        'cluster.worker[1]'
    """
    said = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return said.removeprefix(".")
