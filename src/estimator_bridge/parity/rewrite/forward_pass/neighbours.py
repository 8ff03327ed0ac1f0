"""Finds the place of an operation in a model by the variables before it and next behind it, whatever the order of construction."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

_DATA = 1  # bit of what is neither a constant nor a variable


def places(draws: Iterable[Any], forward: Collection[Any], names: Mapping[Any, str]) -> dict[Any, tuple[int, int]]:
    """Returns for each operation that draws a mask: a digest of the variables on which the masked tensor depends, and one of the next behind it.

    Args:
        draws: Operations of one graph.
        forward: Operations of that graph on which the loss depends.
        names: Operation that gives a variable -> name of the variable.
    """
    draws = [op for op in draws if op in forward]
    if not draws:
        return {}
    ordered = [op for op in draws[0].graph.get_operations() if op in forward]
    numbers = {name: 1 << number for number, name in enumerate(sorted(set(names.values())), 1)}
    before: dict[Any, int] = {}
    for op in ordered:
        own = numbers[names[op]] if op in names else 0 if op.inputs or op.type == "Const" else _DATA
        before[op] = _all(before.get(tensor.op, 0) for tensor in op.inputs) | own
    behind: dict[Any, int] = {}
    for op in reversed(ordered):
        met = ((one, _beside(one, (op,), before) & ~_DATA) for one in _consumers(op, forward))
        behind[op] = _all(variables or behind.get(one, 0) for one, variables in met)
    found = {}
    for draw in draws:
        mask = {draw}
        for op in ordered:  # after its inputs, but for those of loops
            if op in mask:
                following = [one for one in _consumers(op, forward) if one not in mask]
                mask.update(following)
                masked = next((one for one in following if _beside(one, mask, before)), None)
                if masked is not None:
                    found[draw] = _digest(_beside(masked, mask, before), names), _digest(behind.get(masked, 0), names)
                    break
    return found


def _consumers(op: Any, forward: Collection[Any]) -> list[Any]:
    return [one for tensor in op.outputs for one in tensor.consumers() if one in forward]


def _beside(op: Any, others: Collection[Any], before: Mapping[Any, int]) -> int:
    """Returns the bits of an operation's inputs that do not come from others."""
    return _all(before.get(tensor.op, 0) for tensor in op.inputs if tensor.op not in others)


def _all(bits: Iterable[int]) -> int:
    found = 0
    for more in bits:
        found |= more
    return found


def _digest(bits: int, names: Mapping[Any, str]) -> int:
    read = [name for number, name in enumerate(sorted(set(names.values())), 1) if bits >> number & 1]
    return zlib.crc32("\n".join(read).encode())
