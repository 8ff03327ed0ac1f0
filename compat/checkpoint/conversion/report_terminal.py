"""A conversion's report as tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import rich.box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from estimator_bridge.compat.checkpoint.writing.report import ConversionReport

MOST_ROWS = 40


def print_report(report: ConversionReport, console: Console, dry_run: bool = False) -> None:
    """Prints a report; variables without a counterpart come first.

    Args:
        report: Report of the conversion.
        console: Console to print to.
        dry_run: True if nothing should be written.

    Example:
        >>> import sys
        >>> done = ConversionReport("old/m", "new/m", "name-based", written=True, renamed=2, sharing=("link",))
        >>> print_report(done, Console(file=sys.stdout, width=80))
        Wrote new/m: name-based, 2 renamed, 1 data file (link)
    """
    console.print(Text(_headline(report, dry_run)), soft_wrap=True)
    _list("Ambiguous", (f"{target}: {' or '.join(sources)}" for target, sources in report.ambiguous.items()), console)
    _list("In the source only", report.unmatched_sources, console)
    _list("In the target only", report.unmatched_targets, console)
    _list("Note", report.warnings, console)
    _table(("source", "target", "by"), [(pair.source, pair.target, pair.how) for pair in report.matches], console)
    cells = [(cell.source, cell.target, cell.note) for cell in report.layouts]
    _table(("cell in the source", "in the target", ""), cells, console)
    slots = [(slot.source or "-", slot.target or "left out", slot.note) for slot in report.slots]
    _table(("slot in the source", "in the target", ""), slots, console)


def _headline(report: ConversionReport, dry_run: bool) -> str:
    if not report.complete:
        return f"Nothing was written to {report.target}: some variables have no counterpart. See --map and --allow-unmatched."
    if dry_run:
        return f"Would write {report.target}: {report.to}"
    parts = [report.to]
    if report.renamed:
        parts.append(f"{report.renamed:,} renamed")
    if report.sharing:
        files = "file" if len(report.sharing) == 1 else "files"
        parts.append(f"{len(report.sharing)} data {files} ({', '.join(sorted(set(report.sharing)))})")
    verb = "Already there, the same to the last byte:" if report.unchanged else "Wrote"
    return f"{verb} {report.target}: {', '.join(parts)}"


def _list(label: str, items: Iterable[str], console: Console) -> None:
    rows = list(items)
    for item in rows[:MOST_ROWS]:
        console.print(Text.assemble((f"{label}: ", "bold yellow"), item), soft_wrap=True)
    if len(rows) > MOST_ROWS:
        console.print(f"... and {len(rows) - MOST_ROWS:,} more", highlight=False)


def _table(columns: Sequence[str], rows: Sequence[tuple[str, ...]], console: Console) -> None:
    if not rows:
        return
    table = Table(box=rich.box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows[:MOST_ROWS]:
        table.add_row(*map(Text, row))
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(f"... and {len(rows) - MOST_ROWS:,} more: --format json", highlight=False)
