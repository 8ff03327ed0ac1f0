"""JSON reader with the position of each key, and of the error in a broken file."""

from __future__ import annotations

import bisect
import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from estimator_bridge.errors import BridgeError

Path = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class _NoNumberError(Exception):
    """A word that Python's reader takes for a number and JSON does not have: NaN or an infinity."""


@dataclasses.dataclass(frozen=True)
class Document:
    """JSON object with positions.

    Attributes:
        value: The object.
        places: Path of keys and indices -> line and column, both from 1.
        source: Name of the file for errors.
    """

    value: Mapping[str, Any]
    places: Mapping[Path, tuple[int, int]]
    source: str

    def where(self, path: Path) -> str:
        """Returns ``file, line 2, column 5`` for a path, or for the nearest part around it."""
        while path and path not in self.places:
            path = path[:-1]
        line, column = self.places.get(path, (1, 1))
        return f"{self.source}, line {line}, column {column}"

    def error(self, path: Path, what: str, **details: Any) -> BridgeError:
        """Returns an error that begins with the position of a path; ``details`` are those of ``BridgeError``."""
        return BridgeError(f"{self.where(path)}: {what}", **details)

    def inside(self, key: str) -> Document:
        """Returns the object of a key, with positions."""
        places = {path[1:]: place for path, place in self.places.items() if path[:1] == (key,)}
        return Document(self.value[key], places, self.source)


def read_object(text: str, source: str, expected: str = "a JSON object") -> Document:
    """Reads a JSON object.

    Args:
        text: Text of the file.
        source: Name of the file for errors.
        expected: Description of the object for errors.

    Returns:
        The object, with positions.

    Raises:
        BridgeError: The JSON is broken, is not an object, or has a key twice; the error gives line and column.

    Example:
        >>> read_object('{"task": {"index": 0}}', "job.json").where(("task", "index"))
        'job.json, line 1, column 11'
    """
    value = read_json(text, source, expected, _no_number)
    _refuse_half_characters(text, value, source)
    if not isinstance(value, dict):
        raise BridgeError(
            f"{source}, line 1, column 1: this is not a JSON object.",
            expected=expected,
            received=f"JSON of the type {type(value).__name__}",
        )
    return Document(value, _places(text, source), source)


def read_json(text: str, source: str, expected: str, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """Reads JSON without positions, which cost much in a large file.

    Args:
        text: Text of the file.
        source: Name of the file for errors.
        expected: Description of the content for errors.
        parse_constant: Function of ``NaN`` and infinities, which are no JSON; None to take them as Python does.

    Raises:
        BridgeError: The JSON is broken; the error gives line and column.

    Example:
        >>> read_json("[1, 2]", "numbers.json", "a list")
        [1, 2]
    """
    try:
        return json.loads(text, parse_constant=parse_constant)
    except json.JSONDecodeError as error:
        lines = text.splitlines() or [""]
        raise BridgeError(
            f"{source}, line {error.lineno}, column {error.colno}: this is not JSON.",
            expected=expected,
            received=f"{error.msg}, in: {lines[min(error.lineno, len(lines)) - 1].strip() or 'an empty line'}",
            fix="Correct that line; a comma after the last element and single quotes are not valid.",
        ) from None
    except _NoNumberError as error:
        word = error.args[0]
        at = next((match.start() for match in _TOKEN.finditer(text) if match.group() == word), 0)
        line, column = _line_column(text, at)
        raise BridgeError(
            f"{source}, line {line}, column {column}: {word} is not a number in JSON.",
            expected=expected,
            received=word,
            fix="Write a finite number, or leave the field out.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise BridgeError(
            f"{source}: this JSON cannot be read.",
            expected=expected,
            received=error,
            fix="Use numbers of at most 4,300 digits, and fewer levels of nesting.",
        ) from None


def _no_number(word: str) -> None:
    raise _NoNumberError(word)


def _refuse_half_characters(text: str, value: Any, source: str) -> None:
    """Refuses half of a surrogate pair, which no file can contain."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        at = max(text.find(half), text.lower().find(f"\\u{ord(half):04x}"), 0)
        line, column = _line_column(text, at)
        raise BridgeError(
            f"{source}, line {line}, column {column}: half a character.",
            expected="a surrogate pair, not one half of it",
            received=repr(half),
            fix="Write the whole character.",
        ) from None


def _places(text: str, source: str) -> dict[Path, tuple[int, int]]:
    """Returns the position of each key and value of well-formed JSON."""
    places: dict[Path, tuple[int, int]] = {}
    ends = [match.start() for match in re.finditer("\n", text)]
    stack: list[list[Any]] = []  # [path of an object or array, key or index in it; None before a key]
    for match in _TOKEN.finditer(text):
        token, line = match.group(), bisect.bisect_left(ends, match.start())
        place = line + 1, match.start() - (ends[line - 1] if line else -1)
        path = (*stack[-1][0], stack[-1][1]) if stack else ()
        if token in {"}", "]"}:
            stack.pop()
        elif token == ",":
            stack[-1][1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif stack and stack[-1][1] is None:
            stack[-1][1] = json.loads(token)
            path = (*stack[-1][0], stack[-1][1])
            if path in places:
                _refuse_twice(path, places[path], place, source)
            places[path] = place
        elif token != ":":
            places.setdefault(path, place)
            if token in {"{", "["}:
                stack.append([path, None if token == "{" else 0])
    return places


def _refuse_twice(path: Path, first: tuple[int, int], again: tuple[int, int], source: str) -> None:
    raise BridgeError(
        f"{source}, line {again[0]}, column {again[1]}: {path_text(path)} occurs twice.",
        expected="each key once",
        received=f"the first in line {first[0]}, column {first[1]}",
        fix="Drop one of them; JSON readers silently take the last.",
    )


def _line_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def path_text(path: Path) -> str:
    """Returns a path as text, e.g. ``cluster.worker[1]``.

    Args:
        path: Keys and indices.

    Example:
        >>> path_text(("cluster", "worker", 1))
        'cluster.worker[1]'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
