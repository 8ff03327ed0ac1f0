"""Writes compat/source/fixers/kept_names.txt: the names of TensorFlow 1 that mean the same object in TensorFlow 2.

``TF_USE_LEGACY_KERAS=1 python make_kept_names.py [TensorFlow 2.15's list]``: a name stays in the list if both versions have it.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path

TABLE = Path(__file__).parents[4] / "compat" / "source" / "fixers" / "kept_names.txt"
SKIPPED = frozenset({"compat", "estimator", "raw_ops", "summary"})
"""Modules that a fixer knows better, or that nobody spells through TensorFlow 1."""


def kept_names() -> list[str]:
    """Returns dotted names below ``tf``."""
    import tensorflow as tf

    return sorted(_same(tf.compat.v1, tf, "", frozenset()))


def _same(one: types.ModuleType, two: object, prefix: str, seen: frozenset[int]) -> Iterator[str]:
    for name in dir(one):
        value, other = getattr(one, name), getattr(two, name, None)
        if name.startswith("_") or name in SKIPPED or other is None or id(value) in seen:
            continue
        if isinstance(value, types.ModuleType):
            yield from _same(value, other, f"{prefix}{name}.", seen | {id(value)})
        elif value is other or (isinstance(value, int | float | str) and value == other):
            yield f"{prefix}{name}"


if __name__ == "__main__":
    found = set(kept_names())
    for listed in sys.argv[1:]:
        found &= set(Path(listed).read_text().split())
    TABLE.write_text("".join(f"{name}\n" for name in sorted(found)))
