"""What a conversion did, or would do: nothing is left out silently."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.checkpoint.names.matching import Match
from estimator_bridge.compat.checkpoint.writing.staging import Sharing


@dataclasses.dataclass(frozen=True)
class ConvertedSlot:
    """A slot variable.

    Attributes:
        source: its name in the source; "" where zeros were written.
        target: its name in the target; "" where it was left out.
        note: how its value changed, or why it was left out.
    """

    source: str
    target: str
    note: str = ""


@dataclasses.dataclass(frozen=True)
class ConvertedLayout:
    """A recurrent cell whose weights were laid out anew.

    Attributes:
        source: its scope in the source.
        target: its scope in the target.
        note: what was done to the weights.
    """

    source: str
    target: str
    note: str


@dataclasses.dataclass
class ConversionReport:
    """A conversion.

    Attributes:
        source: prefix of the source.
        target: prefix of the target.
        to: its kind.
        written: False when something was unmatched, or it was a dry run.
        unchanged: the target was there already, the same to the last byte.
        renamed: how many variables were renamed.
        matches: pairs of variables.
        slots: of optimizers.
        layouts: of recurrent cells; their variables are called "CELL as LAYOUT/..." in ``matches`` and ``slots``.
        warnings: what to look at.
        ambiguous: target variable -> sources that fit equally well.
        unmatched_sources: variables of the source that the target has no place for.
        unmatched_targets: variables of the target that the source has no value for.
        sharing: how each data file came to the target.
        allowed: unmatched variables were allowed.
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
        """Everything has its place, or what has none was allowed; what is ambiguous never is."""
        unmatched = self.unmatched_sources or self.unmatched_targets
        return not self.ambiguous and (self.allowed or not unmatched)

    @property
    def exit_code(self) -> int:
        """0 when complete, 1 when something needs a decision."""
        return 0 if self.complete else 1

    def leave_slots_out(self, reason: str) -> None:
        """Tells of every slot that the target's format has no place for it."""
        self.slots = [
            dataclasses.replace(slot, target="", note=slot.note if not slot.target else reason) for slot in self.slots
        ]
        self.warnings.append(f"The optimizer's state is left out: {reason}.")

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return dataclasses.asdict(self) | {"complete": self.complete}
