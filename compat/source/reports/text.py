"""The output of ``check`` as lines and a table for readers, and as data for programs."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

from estimator_bridge.compat.source.checking import FileReport
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict


def as_data(reports: Sequence[FileReport], version: str) -> dict[str, Any]:
    """Returns all findings as data, also of names that run.

    Args:
        reports: Reports on files.
        version: Version of the TensorFlow that the files were judged for.

    Returns:
        Values for JSON.
    """
    files = [
        {
            "path": report.path,
            "lines": report.lines,
            "findings": [_finding_as_data(finding, report) for finding in report.findings],
        }
        for report in reports
    ]
    totals = total(reports)
    return {"tensorflow": version, "counts": {verdict.value: totals[verdict] for verdict in Verdict}, "files": files}


def _finding_as_data(finding: SourceFinding, report: FileReport) -> dict[str, Any]:
    cell, line = report.cells.find(finding.line)
    values = dataclasses.asdict(finding) | {"kind": finding.kind.name.lower(), "verdict": finding.verdict.value, "line": line}
    return {"cell": cell, **values} if cell else values


def total(reports: Sequence[FileReport]) -> Counter[Verdict]:
    """Returns the number of findings of each verdict.

    Args:
        reports: Reports on files.
    """
    return Counter(finding.verdict for report in reports for finding in report.findings)


def print_reports(reports: Sequence[FileReport], version: str, console: Any) -> None:
    """Prints one line for each finding that does not simply run, then a table.

    Args:
        reports: Reports on files.
        version: Version of the TensorFlow that the files were judged for.
        console: Console of rich.
    """
    for report in reports:
        for finding in report.findings:
            if finding.verdict is not Verdict.RUNS:
                where = f"{report.cells.place(report.path, finding.line)}:{finding.column}"
                text = f"{where}: {finding.verdict.value}: {finding.symbol}: {finding.message}"
                console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)
    console.print(_table(reports))
    lines = sum(report.lines for report in reports)
    judged = f"{_count(len(reports), 'file')}, {_count(lines, 'line')}"
    console.print(f"{judged}, judged for TensorFlow {version}.", highlight=False)


def _count(quantity: int, noun: str) -> str:
    return f"{quantity:,} {noun}{'' if quantity == 1 else 's'}"


def _table(reports: Sequence[FileReport]) -> Any:
    from rich.table import Column, Table

    table = Table("", *(Column(title, justify="right") for title in ("runs", "mended by run", "look at", "needs a human")))
    counts = Counter((finding.kind, finding.verdict) for report in reports for finding in report.findings)
    for kind in Kind:
        if any(counts[kind, verdict] for verdict in Verdict):
            table.add_row(kind.value, *(f"{counts[kind, verdict]:,}" for verdict in Verdict))
    totals = total(reports)
    table.add_row("all", *(f"{totals[verdict]:,}" for verdict in Verdict))
    return table
