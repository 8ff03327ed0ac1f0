"""Which variable of an old checkpoint is which of a model: proposed by name, shape and order, never guessed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from estimator_bridge.compat.checkpoint.errors import NamingError
from estimator_bridge.compat.checkpoint.format.bundle import Shape

How = Literal["map", "name", "end of name", "shape", "order"]


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


@dataclasses.dataclass(frozen=True)
class Match:
    """A pair.

    Attributes:
        source: key in the old checkpoint.
        target: key on the other side.
        how: what told.
    """

    source: str
    target: str
    how: How


@dataclasses.dataclass(frozen=True)
class Matching:
    """The result.

    Attributes:
        matches: the pairs.
        ambiguous: target key -> the sources that fit equally well.
        unmatched_sources: keys that nothing on the other side fits.
        unmatched_targets: the same of the other side.
    """

    matches: tuple[Match, ...]
    ambiguous: Mapping[str, tuple[str, ...]]
    unmatched_sources: tuple[str, ...]
    unmatched_targets: tuple[str, ...]


def match(
    sources: Sequence[Named], targets: Sequence[Named], given: Mapping[str, str] | None = None, accept_order: bool = False
) -> Matching:
    """Pairs variables.

    Args:
        sources: of the old checkpoint.
        targets: of the model, in its order.
        given: source key -> target key or name, decided by the user.
        accept_order: pair what is left of one shape in order of creation, ``dense`` before ``dense_1`` before ``dense_10``.

    Returns:
        The pairs, and what is left.

    Raises:
        NamingError: when ``given`` names what is not there, or shapes that differ.

    Example:
        >>> old = [Named("m/h/kernel", "m/h/kernel", (4, 6), 1), Named("m/h/bias", "m/h/bias", (6,), 1)]
        >>> new = [Named("model/w", "sequential/h/kernel", (4, 6), 1), Named("model/b", "sequential/h/bias", (6,), 1)]
        >>> [(pair.source, pair.target, pair.how) for pair in match(old, new).matches]
        [('m/h/kernel', 'model/w', 'end of name'), ('m/h/bias', 'model/b', 'end of name')]
    """
    matcher = _Matcher(list(sources), list(targets))
    matcher.take_given(given or {})
    matcher.take_unique("name", lambda source, target: source.name == target.name)
    for length in range(8, 0, -1):
        matcher.take_unique("end of name", _same_ending(length))
    ambiguous = matcher.ambiguous()
    matcher.take_unique("shape", lambda source, target: target.key not in ambiguous)
    if accept_order:
        matcher.take_in_order()
    return matcher.result()


class _Matcher:
    def __init__(self, sources: list[Named], targets: list[Named]) -> None:
        self._sources, self._targets = sources, targets
        self._matches: list[Match] = []

    def take_given(self, given: Mapping[str, str]) -> None:
        for key, wanted in given.items():
            source = next((source for source in self._sources if source.key == key), None)
            target = next((target for target in self._targets if wanted in {target.key, target.name}), None)
            if source is None or target is None:
                missing = key if source is None else wanted
                raise NamingError(f"The map names {missing!r}, which is not there.", received=f"{key} -> {wanted}")
            if source.shape != target.shape:
                raise NamingError(
                    f"The map pairs variables of different shapes: {key!r} and {wanted!r}.",
                    expected=list(target.shape),
                    received=list(source.shape),
                )
            self._take(source, target, "map")

    def take_unique(self, how: How, fits: Callable[[Named, Named], bool]) -> None:
        """Takes the pairs in which each is the only one that fits the other."""
        pairs = [(s, t) for group in self._groups() for s in group[0] for t in group[1] if fits(s, t)]
        source_counts = _counts(source.key for source, _ in pairs)
        target_counts = _counts(target.key for _, target in pairs)
        for source, target in pairs:
            if source_counts[source.key] == target_counts[target.key] == 1:
                self._take(source, target, how)

    def take_in_order(self) -> None:
        for sources, targets in self._groups():
            if len(sources) == len(targets):
                for source, target in zip(sorted(sources, key=_natural), targets, strict=True):
                    self._take(source, target, "order")

    def ambiguous(self) -> dict[str, tuple[str, ...]]:
        return {
            target.key: tuple(source.key for source in sources)
            for sources, targets in self._groups()
            if len(sources) > 1 or len(targets) > 1
            for target in targets
        }

    def result(self) -> Matching:
        ambiguous = self.ambiguous()
        candidates = {key for keys in ambiguous.values() for key in keys}
        sources = tuple(source.key for source in self._sources if source.key not in candidates)
        targets = tuple(target.key for target in self._targets if target.key not in ambiguous)
        return Matching(tuple(self._matches), ambiguous, sources, targets)

    def _groups(self) -> list[tuple[list[Named], list[Named]]]:
        """What is left of both sides by shape and dtype, where both have some."""
        kinds: dict[object, tuple[list[Named], list[Named]]] = {}
        for side, variables in enumerate((self._sources, self._targets)):
            for variable in variables:
                kinds.setdefault((variable.shape, variable.dtype), ([], []))[side].append(variable)
        return [group for group in kinds.values() if all(group)]

    def _take(self, source: Named, target: Named, how: How) -> None:
        self._matches.append(Match(source.key, target.key, how))
        self._sources.remove(source)
        self._targets.remove(target)


def _same_ending(length: int) -> Callable[[Named, Named], bool]:
    def fits(source: Named, target: Named) -> bool:
        one, other = source.name.split("/")[-length:], target.name.split("/")[-length:]
        return one == other and len(one) == length

    return fits


def _counts(keys: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return counts


def _natural(variable: Named) -> list[object]:
    """``dense`` before ``dense_2`` before ``dense_10``."""
    return [(int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", variable.name)]
