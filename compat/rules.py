"""Rules: what takes the place of a legacy name on the modern side, how faithfully, and why; data that every converter shares."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


class Fidelity(enum.Enum):
    """How faithfully the modern side says what the legacy side said, best first."""

    EXACT = "exact"
    """The same behaviour, and the way back gives the same value."""
    APPROXIMATE = "approximate"
    """The same purpose; the note says what differs."""
    MANUAL = "manual"
    """It matters, and only a human can carry it over; the note says how."""
    DROPPED = "dropped"
    """Nothing takes its place; the note says why nothing has to."""

    @property
    def automatic(self) -> bool:
        """True where a program carries it over without anybody's help."""
        return self in {Fidelity.EXACT, Fidelity.APPROXIMATE}

    @classmethod
    def worst(cls, several: Iterable[Fidelity]) -> Fidelity:
        """The least faithful of several; ``EXACT`` of none.

        Args:
            several: in any order.

        Returns:
            The one that a summary has to show.

        Example:
            >>> Fidelity.worst([Fidelity.MANUAL, Fidelity.EXACT])
            <Fidelity.MANUAL: 'manual'>
        """
        order = list(cls)
        return order[max((order.index(one) for one in several), default=0)]


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What one legacy value becomes.

    Attributes:
        settings: the modern settings that it amounts to, by name; empty where there are none.
        fidelity: where this value is carried over less faithfully than the rule promises.
        note: why, for this value.
    """

    settings: Mapping[str, Any]
    fidelity: Fidelity | None = None
    note: str = ""


Convert = Callable[[Any], Conversion]
Invert = Callable[[Mapping[str, Any]], Any]


@dataclasses.dataclass(frozen=True)
class Rule:
    """One row of a table.

    Attributes:
        name: the legacy name, dotted where it is nested.
        target: what takes its place, in TensorFlow's own words; empty where nothing does.
        fidelity: how faithfully.
        convert: from a legacy value to modern settings.
        invert: from modern settings to the legacy value, None where they do not say.
        reference: where the target is documented.
        note: the reason, and what differs.
        examples: legacy values that show the row at work; the tests apply each.

    Raises:
        ValueError: for a row that promises more than it holds.

    Example:
        >>> row = Rule("keep", "keep", Fidelity.EXACT, lambda value: Conversion({"keep": value}), lambda on: on.get("keep"))
        >>> row.invert(row.convert(3).settings)
        3
    """

    name: str
    target: str
    fidelity: Fidelity
    convert: Convert | None = None
    invert: Invert | None = None
    reference: str = ""
    note: str = ""
    examples: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.fidelity.automatic and (self.convert is None or not self.target):
            raise ValueError(f"{self.name}: an {self.fidelity.value} row names its target and converts.")
        if self.fidelity is Fidelity.EXACT and self.invert is None:
            raise ValueError(f"{self.name}: an exact row has a way back.")
        if self.fidelity is not Fidelity.EXACT and not self.note:
            raise ValueError(f"{self.name}: a row that is {self.fidelity.value} gives its reason.")


@dataclasses.dataclass(frozen=True)
class RuleTable:
    """The rows of one legacy thing, complete over its real surface.

    Attributes:
        name: a word for file names.
        title: for readers.
        rules: the rows, in the order in which readers look for them.
        about: a paragraph for readers: what the rows have in common.

    Raises:
        ValueError: where two rows have the same name.

    Example:
        >>> table = RuleTable("colours", "Colours", (Rule("red", "", Fidelity.DROPPED, note="everything is grey"),))
        >>> table["red"].note, "green" in table
        ('everything is grey', False)
    """

    name: str
    title: str
    rules: tuple[Rule, ...]
    about: str = ""

    def __post_init__(self) -> None:
        twice = sorted(name for name, count in Counter(rule.name for rule in self.rules).items() if count > 1)
        if twice:
            raise ValueError(f"{self.name}: several rows for {', '.join(twice)}.")

    def __getitem__(self, name: str) -> Rule:
        return {rule.name: rule for rule in self.rules}[name]

    def __contains__(self, name: object) -> bool:
        return any(rule.name == name for rule in self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    @property
    def names(self) -> tuple[str, ...]:
        """Of its rows, in order."""
        return tuple(rule.name for rule in self.rules)

    def counts(self) -> dict[Fidelity, int]:
        """How many rows there are of each fidelity.

        Returns:
            Every fidelity, best first, also those without a row.
        """
        seen = Counter(rule.fidelity for rule in self.rules)
        return {fidelity: seen[fidelity] for fidelity in Fidelity}

    def invert(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The legacy values that modern settings amount to.

        Args:
            settings: modern settings by name; those that no row knows are left alone.

        Returns:
            Legacy values by the rows' names; only what the settings say.
        """
        values = {rule.name: rule.invert(settings) for rule in self.rules if rule.invert is not None}
        return {name: value for name, value in values.items() if value is not None}
