"""The outcomes of a conversion as one HTML page: each line of the old scripts with what became of it, and the new scripts."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Iterable

from estimator_bridge.compat.source.fixers.conversion import Conversion
from estimator_bridge.compat.source.fixers.marks import Change, Outcome
from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.reports.page import environment

_WORST_FIRST = (Outcome.HUMAN, Outcome.APPROXIMATE, Outcome.CONVERTED)


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of an old script.

    Attributes:
        place: Its number; in a notebook the cell's, too.
        text: The line.
        changes: Outcomes of what begins in it.
    """

    place: str
    text: str
    changes: tuple[Change, ...]

    @property
    def outcome(self) -> Outcome | None:
        """The outcome that needs most attention; None if nothing was converted here."""
        found = {change.outcome for change in self.changes}
        return next((one for one in _WORST_FIRST if one in found), None)


@dataclasses.dataclass(frozen=True)
class ConvertedFile:
    """An old script and the new one.

    Attributes:
        path: Path of the old one.
        lines: Lines of the old one.
        new: Text of the new one.
        counts: Number of constructs with each outcome.
    """

    path: str
    lines: tuple[Line, ...]
    new: str
    counts: Counter[Outcome]


def converted_file(source: Source, conversion: Conversion) -> ConvertedFile:
    """Returns what the page shows of a file.

    Args:
        source: The old script.
        conversion: Its conversion.
    """
    places: dict[int, list[Change]] = {}
    for change in conversion.changes:
        places.setdefault(change.line, []).append(change)
    lines = (
        Line(source.cells.line(number).removeprefix("line "), text, tuple(places.get(number, ())))
        for number, text in enumerate(source.text.splitlines(), 1)
    )
    return ConvertedFile(source.path, tuple(lines), conversion.text, Counter(change.outcome for change in conversion.changes))


def render_conversions(conversions: Iterable[tuple[Source, Conversion]]) -> str:
    """Returns one HTML document without any external resource; all text of files is escaped in it.

    Args:
        conversions: Old scripts and their conversions.
    """
    files = [converted_file(*one) for one in conversions]
    return (
        environment()
        .get_template("conversion.html.j2")
        .render(
            files=files,
            complete=sum(not file.counts[Outcome.HUMAN] for file in files),
            counts=sum((file.counts for file in files), Counter()),
            Outcome=Outcome,
            date=datetime.datetime.now(datetime.timezone.utc),
        )
    )
