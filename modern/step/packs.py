"""Packs: neighbours that are handled at once, so that neither their number nor their memory is large."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def packs(items: Sequence[T], size: Callable[[T], int], most: int) -> list[list[T]]:
    """Divides items into packs of neighbours.

    Args:
        items: Items.
        size: Function that returns the bytes of an item.
        most: Bytes that a pack may have; an item that is larger is a pack alone.

    Example:
        >>> packs(["a", "bb", "ccccc", "d"], len, 3)
        [['a', 'bb'], ['ccccc'], ['d']]
    """
    found: list[list[T]] = []
    left = -1
    for item in items:
        if size(item) > left:
            found.append([])
            left = most
        found[-1].append(item)
        left -= size(item)
    return found
