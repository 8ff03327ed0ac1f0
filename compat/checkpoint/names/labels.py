"""Variables of one side, grouped by shape, dtype and a label made of their names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.format.bundle import Shape
from estimator_bridge.compat.checkpoint.names import roles

Label = Callable[[str], str | None]  # a variable's name -> its label, None for a variable to leave out
ShapeAndDtype = tuple[Shape, int]


class Named(NamedTuple):
    """A variable of either side.

    Attributes:
        key: Name in its checkpoint.
        name: Name to compare.
        shape: Shape of the variable.
        dtype: Number of its DataType.
    """

    key: str
    name: str
    shape: Shape
    dtype: int


def shape_and_dtype(variable: Named) -> ShapeAndDtype:
    """Returns the properties that are equal in every pair."""
    return variable.shape, variable.dtype


def in_scope(level: int, translations: Mapping[str, str] | None, name: str) -> str | None:
    """Returns a variable's scope, translated if there are translations, and its role; None without a translation."""
    scope: str | None = roles.scope(name, level)
    if translations is not None:
        scope = translations.get(scope or "")
    return None if scope is None else f"{scope}/{roles.role(name)}"


def group(variables: Iterable[Named], label: Label) -> dict[tuple[ShapeAndDtype, str], list[Named]]:
    """Groups variables by shape, dtype and label."""
    found: dict[tuple[ShapeAndDtype, str], list[Named]] = {}
    for variable in variables:
        text = label(variable.name)
        if text is not None:
            found.setdefault((shape_and_dtype(variable), text), []).append(variable)
    return found


def find_one_to_one(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the pairs whose members are in no other pair."""
    known = set(pairs)
    here, there = (Counter(pair[side] for pair in known) for side in (0, 1))
    return {source: target for source, target in known if here[source] == there[target] == 1}


def natural_order(variable: Named) -> list[object]:
    """Returns a key that sorts ``dense`` before ``dense_2`` before ``dense_10``."""
    return [(int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", variable.name)]
