"""Variables of one side, sorted by what can tell them apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from estimator_bridge.compat.checkpoint.format.bundle import Shape
from estimator_bridge.compat.checkpoint.names import roles


class Named(NamedTuple):
    """A variable of either side.

    Attributes:
        key: its name in its checkpoint.
        name: what to compare.
        shape: of it.
        dtype: number of its DataType.
    """

    key: str
    name: str
    shape: Shape
    dtype: int


Kind = tuple[Shape, int]


def kind(variable: Named) -> Kind:
    """What a pair has to have in common."""
    return variable.shape, variable.dtype


def role(variable: Named) -> str:
    """See ``roles.role``."""
    return roles.role(variable.name)


def ending(length: int, variable: Named) -> str | None:
    """See ``roles.ending``."""
    return roles.ending(variable.name, length)


def in_scope(level: int, translations: Mapping[str, str] | None, variable: Named) -> str | None:
    """A variable's scope, translated where translations are given, and its role; None without a translation."""
    scope: str | None = roles.scope(variable.name, level)
    if translations is not None:
        scope = translations.get(scope or "")
    return None if scope is None else f"{scope}/{role(variable)}"


def unnumbered(variable: Named) -> str:
    """See ``roles.unnumbered``."""
    return roles.unnumbered(variable.name)


def labelled(variables: Iterable[Named], label: Callable[[Named], str | None]) -> dict[tuple[Kind, str], list[Named]]:
    """Variables by shape, dtype and label; None leaves one out."""
    found: dict[tuple[Kind, str], list[Named]] = {}
    for variable in variables:
        name = label(variable)
        if name is not None:
            found.setdefault((kind(variable), name), []).append(variable)
    return found


def one_to_one(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What is paired with one thing only, both ways."""
    known = set(pairs)
    here, there = (Counter(pair[side] for pair in known) for side in (0, 1))
    return {source: target for source, target in known if here[source] == there[target] == 1}


def natural(variable: Named) -> list[object]:
    """``dense`` before ``dense_2`` before ``dense_10``."""
    return [(int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", variable.name)]
