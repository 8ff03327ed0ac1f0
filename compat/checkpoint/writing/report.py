"""The report of a conversion, in which nothing is left out silently."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.checkpoint.names.matching import Match
from estimator_bridge.compat.checkpoint.writing.staging import Sharing


@dataclasses.dataclass(frozen=True)
class ConvertedSlot:
    """A slot variable that was converted or left out.

    Attributes:
        source: Name in the source; "" if zeros were written.
        target: Name in the target; "" if it was left out.
        note: Change of its value, or the reason why it was left out.
    """

    source: str
    target: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class ConvertedLayout:
    """A recurrent cell whose weights got another layout.

    Attributes:
        source: Scope in the source.
        target: Scope in the target.
        note: Changes of the weights.
    """

    source: str
    target: str
    note: str


@dataclasses.dataclass
class ConversionReport:
    """The report of a conversion.

    Attributes:
        source: Prefix of the source.
        target: Prefix of the target.
        to: Kind of the target.
        written: True if the target was written: nothing was unmatched, and it was no dry run.
        unchanged: True if the target existed already with the same bytes.
        renamed: Number of renamed variables.
        matches: Pairs of variables.
        slots: Slots of optimizers.
        layouts: Recurrent cells; their variables have names like "CELL as LAYOUT/..." in ``matches`` and ``slots``.
        warnings: Warnings for the user.
        ambiguous: Target variable -> sources that fit equally well.
        unmatched_sources: Variables of the source for which the target has no place.
        unmatched_targets: Variables of the target for which the source has no value.
        sharing: For each data file, "link", "clone" or "copy".
        allowed: True if the user allowed unmatched variables.
    """

    source: str
    target: str
    to: str
    written: bool = False
    unchanged: bool = False
    renamed: int = 0
    matches: tuple[Match, ...] = ()
    slots: list[ConvertedSlot] = dataclasses.field(default_factory=list)
    layouts: list[ConvertedLayout] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    ambiguous: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    unmatched_sources: list[str] = dataclasses.field(default_factory=list)
    unmatched_targets: list[str] = dataclasses.field(default_factory=list)
    sharing: tuple[Sharing, ...] = ()
    allowed: bool = False

    @property
    def complete(self) -> bool:
        """True if nothing is ambiguous, and nothing is unmatched or the user allowed it."""
        unmatched = self.unmatched_sources or self.unmatched_targets
        return not self.ambiguous and (self.allowed or not unmatched)

    @property
    def exit_code(self) -> int:
        """The exit code: 0 if complete, 1 if something needs a decision."""
        return 0 if self.complete else 1

    def leave_slots_out(self, reason: str) -> None:
        """Reports every slot as left out, since the target's format has no place for it."""
        self.slots = [
            dataclasses.replace(slot, target="", note=slot.note if not slot.target else reason) for slot in self.slots
        ]
        self.warnings.append(f"The optimizer's state is left out: {reason}.")

    def to_json(self) -> dict[str, Any]:
        """Returns the report as plain data."""
        return dataclasses.asdict(self) | {"complete": self.complete}
