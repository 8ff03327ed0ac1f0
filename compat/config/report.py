"""Report of a conversion: a row for every field that was set, and an exit code; as a table on the terminal, and as JSON."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from estimator_bridge.compat.rules import Fidelity
from estimator_bridge.errors import BridgeError

if TYPE_CHECKING:
    from rich.table import Table

_LONGEST_VALUE = 200
COLOURS: Mapping[Fidelity, str] = {
    Fidelity.EXACT: "green",
    Fidelity.APPROXIMATE: "yellow",
    Fidelity.MANUAL: "bold magenta",
    Fidelity.DROPPED: "red",
}


@dataclasses.dataclass(frozen=True)
class Row:
    """One field, or one finding about several.

    Attributes:
        name: Name of the field, e.g. ``session_config.gpu_options.allow_growth``.
        value: Value of the field.
        fidelity: Fidelity of the conversion.
        target: Counterpart of the field.
        note: Reason, and what differs.
        default: True for a default that was not set explicitly.
    """

    name: str
    value: Any
    fidelity: Fidelity
    target: str = ""
    note: str = ""
    default: bool = False


@dataclasses.dataclass(frozen=True)
class Report:
    """Rows of one conversion.

    Example:
        >>> Report((Row("device_fn", "f", Fidelity.MANUAL),)).exit_code()
        1
    """

    rows: tuple[Row, ...]

    def exit_code(self, allow: Sequence[str] = ()) -> int:
        """Returns the exit code: 0 if each field was carried over, or its loss is allowed; else 1.

        Args:
            allow: Names of rows, or patterns of names, whose loss is accepted.

        Raises:
            BridgeError: A name matches no row.
        """
        for pattern in allow:
            if not any(matches(row, pattern) for row in self.rows):
                known = ", ".join(row.name for row in self.needs_human()) or "no --allow: every field was carried over"
                raise BridgeError(f"--allow {pattern} matches no field of this conversion.", expected=known, received=pattern)
        return int(not all(_allowed(row, allow) for row in self.needs_human()))

    def needs_human(self) -> list[Row]:
        """Returns the rows that have no counterpart, or that only a human can carry over."""
        return [row for row in self.rows if not row.fidelity.automatic]


def matches(row: Row, pattern: str) -> bool:
    """Returns True if a pattern matches a row's name, in full or from one of its dots on."""
    parts = row.name.split(".")
    names = [".".join(parts[start:]) for start in range(len(parts))]
    return pattern in names or any(fnmatch.fnmatchcase(name, pattern) for name in names)  # hooks[0] is a name, and a pattern


def report_table(report: Report, allow: Sequence[str] = (), *, expand: bool = True) -> Table:
    """Returns the report as a table for rich, with a row for each field, coloured by fidelity.

    Args:
        report: Report of a conversion.
        allow: Names that ``--allow`` accepts; their rows say so.
        expand: True for a table as wide as the console.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=summary(report), title_justify="left", title_style="bold", show_lines=True, expand=expand)
    for heading, width in (("field, value", 2), ("fidelity", None), ("becomes, and why", 3)):
        table.add_column(heading, overflow="fold", ratio=width if expand else None)
    for row in report.rows:
        word = row.fidelity.value + (" (allowed)" if _allowed(row, allow) else "")
        what = Text.assemble(row.name, "\n", (value_text(row), "dim"))
        becomes = Text.assemble(row.target or "nothing", *(("\n", (row.note, "dim")) if row.note else ()))
        table.add_row(what, Text(word, style=COLOURS[row.fidelity]), becomes)
    return table


def summary(report: Report) -> str:
    """Returns one line with the number of rows of each fidelity, e.g. ``3 fields: 2 exact, 1 dropped``.

    Args:
        report: Report of a conversion.

    Example:
        >>> summary(Report((Row("device_fn", "f", Fidelity.MANUAL),)))
        '1 field: 1 manual'
    """
    counts = Counter(row.fidelity for row in report.rows)
    parts = ", ".join(f"{counts[fidelity]} {fidelity.value}" for fidelity in Fidelity if counts[fidelity])
    total = len(report.rows)
    return f"{total} field{'' if total == 1 else 's'}" + (f": {parts}" if parts else "")


def report_data(report: Report, allow: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Returns the report for JSON, with a dictionary for each row."""
    return [
        {
            "name": row.name,
            "value": json.loads(json.dumps(row.value, default=str)),
            "fidelity": row.fidelity.value,
            "becomes": row.target,
            "why": row.note,
            "default": row.default,
            "allowed": _allowed(row, allow),
        }
        for row in report.rows
    ]


def value_text(row: Row) -> str:
    """Returns a row's value as text, cut if it is very long."""
    text = row.value if isinstance(row.value, str) and row.value.isprintable() else json.dumps(row.value, default=str)
    if len(text) > _LONGEST_VALUE:
        text = f"{text[:_LONGEST_VALUE]}... ({len(text):,} characters)"
    return f"{text} (default)" if row.default else text


def _allowed(row: Row, allow: Sequence[str]) -> bool:
    return not row.fidelity.automatic and any(matches(row, pattern) for pattern in allow)
