"""Finds which names of two sides probably belong together, for pairs that the user is asked about."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence

_WORD = re.compile(r"[a-z]+")
_SAME = {"weights": "kernel", "weight": "kernel", "w": "kernel", "biases": "bias", "b": "bias", "embedding": "embeddings"}
_Words = frozenset[str]


def likely_order(sources: Sequence[str], targets: Sequence[str]) -> tuple[list[int], list[int]]:
    """Orders names by their words, and those that words do not tell apart as they are; numbers count layers, so they are no words.

    Args:
        sources: Names of the old side in order of creation.
        targets: Names of the new side in order.

    Returns:
        The places of both sides' names, such that those that probably belong together are at the same index.

    Example:
        >>> likely_order(["a_X_job/weights", "job/weights"], ["wide_job/embeddings", "wide_a_x_job/embeddings"])
        ([0, 1], [1, 0])
        >>> likely_order(["net/dense", "net/dense_1"], ["dense_1", "dense_2"])
        ([0, 1], [0, 1])
    """
    here, there = _places(sources), _places(targets)
    pairs: list[tuple[int, int]] = []
    while found := _likest(here, there):
        for mine, its in found:
            pairs += zip(here.pop(mine), there.pop(its), strict=True)
    left = [sorted(itertools.chain(*side.values())) for side in (here, there)]
    pairs = sorted([*pairs, *zip(*left, strict=False)])
    paired = len(min(left, key=len))
    return [place for place, _ in pairs] + left[0][paired:], [place for _, place in pairs] + left[1][paired:]


def _places(names: Sequence[str]) -> dict[_Words, list[int]]:
    """Returns each set of words -> the places of the names that have it; words of all names tell nothing."""
    words = [frozenset(_SAME.get(word, word) for word in _WORD.findall(name.lower())) for name in names]
    common = frozenset.intersection(*words) if len(words) > 1 else frozenset()
    found: dict[_Words, list[int]] = {}
    for place, own in enumerate(words):
        found.setdefault(own - common, []).append(place)
    return found


def _likest(here: Mapping[_Words, Sequence[int]], there: Mapping[_Words, Sequence[int]]) -> list[tuple[_Words, _Words]]:
    """Returns the sets of words that are like no other set as much as each other, and have as many names on both sides."""
    pairs = [(mine, its) for mine in here if (its := _likest_of(mine, there)) is not None]
    return [(mine, its) for mine, its in pairs if _likest_of(its, here) == mine and len(here[mine]) == len(there[its])]


def _likest_of(words: _Words, others: Collection[_Words]) -> _Words | None:
    """Returns the set that has most words in common with another one, by Dice's coefficient; None if there is none, or not one alone."""
    scores = {other: 2 * len(words & other) / (len(words) + len(other)) for other in others if words & other}
    best = [other for other, score in scores.items() if score == max(scores.values())]
    return best[0] if len(best) == 1 else None
