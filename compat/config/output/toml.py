"""TOML, as far as configurations need it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(tree: Mapping[str, Any]) -> str:
    """Nested dictionaries as TOML.

    Args:
        tree: tables of strings, numbers, booleans, lists, tables, and lists of tables.

    Returns:
        Text that ``tomllib`` reads back as it was.

    Example:
        >>> print(to_toml({"threads": {"intra_op": 2}}))
        [threads]
        intra_op = 2
        <BLANKLINE>
    """
    return "\n".join(_table(tree, ())).strip() + "\n"


def _table(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    plain = {key: value for key, value in tree.items() if not _is_table(value)}
    if path and plain:
        yield f"[{_dotted(path)}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    if plain:
        yield ""
    for key, value in tree.items():
        inner = (*path, key)
        if isinstance(value, Mapping):
            yield from _table(value, inner) if value else (f"[{_dotted(inner)}]", "")
        elif _is_table(value):
            yield from _tables(value, inner)


def _tables(several: list[Mapping[str, Any]], path: tuple[str, ...]) -> Iterator[str]:
    for one in several:
        yield f"[[{_dotted(path)}]]"
        for key, value in one.items():
            yield f"{_key(key)} = {_value(value)}"
        yield ""


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    """JSON's escapes are TOML's, but for characters beyond 16 bits, which stay themselves, and for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))
