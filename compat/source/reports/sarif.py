"""Findings as SARIF 2.1.0 for code scanning, and as annotations of GitHub Actions."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from estimator_bridge import __version__
from estimator_bridge.compat.source.checking import FileReport
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_LEVELS = {Verdict.HUMAN: "error", Verdict.LOOK: "warning", Verdict.MENDED: "note"}
"""Verdicts that are shown, and their level in SARIF."""
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
"""Levels of SARIF, and commands of GitHub Actions."""
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = {**_ESCAPES, ":": "%3A", ",": "%2C"}


def as_sarif(reports: Sequence[FileReport], command: str = "check") -> dict[str, Any]:
    """Returns the findings that do not simply run as a SARIF 2.1.0 log.

    Args:
        reports: Reports on files.
        command: Command that found them.

    Returns:
        Values for JSON. Paths stay relative; a finding in a notebook is at line 1 of the file, and its text names cell and line.
    """
    rules = [{"id": kind.name.lower(), "name": kind.name.title(), "shortDescription": {"text": kind.value}} for kind in Kind]
    driver = {"name": f"estimator-bridge {command}", "version": __version__, "rules": rules}
    results = [_result(report, finding) for report, finding in _shown(reports)]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def github_annotations(reports: Sequence[FileReport]) -> Iterator[str]:
    r"""Yields a command of GitHub Actions for each finding that does not simply run.

    Args:
        reports: Reports on files.

    Example:
        >>> finding = SourceFinding(2, 1, "tf.gone", Kind.TENSORFLOW, Verdict.HUMAN, "No such name.")
        >>> list(github_annotations([FileReport("a.py", 2, (finding,))]))
        ['::error file=a.py,line=2,col=1,title=tf.gone::No such name.']
    """
    for report, finding in _shown(reports):
        line, column, text = _place(report, finding)
        values = {"file": report.path, "line": str(line), "col": str(column), "title": finding.symbol}
        properties = ",".join(f"{name}={_escape(value, _PROPERTY_ESCAPES)}" for name, value in values.items())
        yield f"::{_COMMANDS[_LEVELS[finding.verdict]]} {properties}::{_escape(text, _ESCAPES)}"


def _shown(reports: Sequence[FileReport]) -> Iterator[tuple[FileReport, SourceFinding]]:
    for report in reports:
        yield from ((report, finding) for finding in report.findings if finding.verdict in _LEVELS)


def _place(report: FileReport, finding: SourceFinding) -> tuple[int, int, str]:
    """Returns line, column and message; of a notebook, whose file has other lines, the first line."""
    if report.cells.starts:
        return 1, 1, f"{report.cells.line(finding.line).capitalize()}: {finding.message}"
    return finding.line, finding.column, finding.message


def _result(report: FileReport, finding: SourceFinding) -> dict[str, Any]:
    line, column, text = _place(report, finding)
    location = {
        "artifactLocation": {"uri": quote(Path(report.path).as_posix())},
        "region": {"startLine": line, "startColumn": column},
    }
    return {
        "ruleId": finding.kind.name.lower(),
        "level": _LEVELS[finding.verdict],
        "message": {"text": f"{finding.symbol}: {text}"},
        "locations": [{"physicalLocation": location}],
    }


def _escape(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)
