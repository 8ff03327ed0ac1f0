"""Conversion rules: the modern counterpart of each legacy name, its fidelity and the reason; every converter uses them."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any


class Fidelity(enum.Enum):
    """Fidelity of a conversion, best first."""

    EXACT = "exact"
    """The behaviour is the same, and converting back gives the same value."""
    APPROXIMATE = "approximate"
    """The purpose is the same; the note says what differs."""
    MANUAL = "manual"
    """The value matters, and only a human can carry it over; the note says how."""
    DROPPED = "dropped"
    """The value has no counterpart; the note says why it needs none."""

    @property
    def automatic(self) -> bool:
        """True if the converter carries the value over by itself."""
        return self in {Fidelity.EXACT, Fidelity.APPROXIMATE}

    @classmethod
    def worst(cls, several: Iterable[Fidelity]) -> Fidelity:
        """Returns the least faithful of several; ``EXACT`` for none.

        Args:
            several: Fidelities in any order.

        Example:
            >>> Fidelity.worst([Fidelity.MANUAL, Fidelity.EXACT])
            <Fidelity.MANUAL: 'manual'>
        """
        return max(several, key=list(cls).index, default=cls.EXACT)


@dataclasses.dataclass(frozen=True)
class Conversion:
    """Result of converting one legacy value.

    Attributes:
        settings: Modern settings by name; empty if there are none.
        fidelity: Fidelity for this value, if it is less than the rule's.
        note: Reason for this value.
    """

    settings: Mapping[str, Any]
    fidelity: Fidelity | None = None
    note: str = ""


Convert = Callable[[Any], Conversion]
Invert = Callable[[Mapping[str, Any]], Any]


@dataclasses.dataclass(frozen=True)
class ConversionRule:
    """One row of a table.

    Attributes:
        name: Legacy name, dotted if it is nested.
        target: Counterpart in TensorFlow's own words; empty if there is none.
        fidelity: Fidelity of the conversion.
        convert: Function from a legacy value to modern settings.
        invert: Function from modern settings to the legacy value; it gives None if they do not set it.
        reference: Address of the target's documentation.
        note: Reason, and what differs.
        examples: Legacy values that the tests convert and apply.

    Raises:
        ValueError: The row lacks what its fidelity requires.

    Example:
        >>> row = ConversionRule("keep", "keep", Fidelity.EXACT, lambda value: Conversion({"keep": value}), lambda on: on.get("keep"))
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
    """Rows for one legacy class or message; together they cover all of its fields.

    Attributes:
        name: Word for file names.
        title: Title of the table's page.
        rules: Rows in the order of the page.
        about: Paragraph about all rows.

    Raises:
        ValueError: Two rows have the same name.

    Example:
        >>> table = RuleTable("colours", "Colours", (ConversionRule("red", "", Fidelity.DROPPED, note="everything is grey"),))
        >>> table["red"].note, "green" in table
        ('everything is grey', False)
    """

    name: str
    title: str
    rules: tuple[ConversionRule, ...]
    about: str = ""

    def __post_init__(self) -> None:
        twice = sorted(name for name, count in Counter(rule.name for rule in self.rules).items() if count > 1)
        if twice:
            raise ValueError(f"{self.name}: several rows for {', '.join(twice)}.")

    def __getitem__(self, name: str) -> ConversionRule:
        return {rule.name: rule for rule in self.rules}[name]

    def __contains__(self, name: object) -> bool:
        return any(rule.name == name for rule in self.rules)

    def __iter__(self) -> Iterator[ConversionRule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rows, in order."""
        return tuple(rule.name for rule in self.rules)

    def counts(self) -> dict[Fidelity, int]:
        """Counts the rows of each fidelity.

        Returns:
            Every fidelity, best first, also those without a row.
        """
        seen = Counter(rule.fidelity for rule in self.rules)
        return {fidelity: seen[fidelity] for fidelity in Fidelity}

    def invert(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Converts modern settings back.

        Args:
            settings: Modern settings by name; settings without a row are ignored.

        Returns:
            Legacy values by the rows' names.
        """
        values = {rule.name: rule.invert(settings) for rule in self.rules if rule.invert is not None}
        return {name: value for name, value in values.items() if value is not None}
