"""The output of ``check`` as one HTML page: the stage of each script, the symbols that stop most scripts, and sums by folder."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from estimator_bridge.compat.source.checking import FileReport
from estimator_bridge.compat.source.verdicts import SourceFinding, Verdict

if TYPE_CHECKING:
    import jinja2

_MOST_BLOCKERS = 50
_MOST_FINDINGS = 200
"""Findings of a file that a page shows; ``--format json`` has all."""


class Stage(enum.Enum):
    """The stage of a script, best first."""

    RUNS = "runs"
    LOOK = "runs, to be looked at"
    HUMAN = "needs a human"
    UNREADABLE = "cannot be judged"


@dataclasses.dataclass(frozen=True)
class Blocker:
    """A symbol that needs a human.

    Attributes:
        symbol: Name as users write it.
        subject: Title of the kind of finding.
        message: Message of its first finding.
        findings: Number of findings.
        files: Number of files with such findings.
        freed: Paths of the files in which nothing else needs a human.
    """

    symbol: str
    subject: str
    message: str
    findings: int
    files: int
    freed: tuple[str, ...]


def stage_of(report: FileReport) -> Stage:
    """Returns the stage of a file.

    Args:
        report: Report on the file.

    Example:
        >>> stage_of(FileReport("train.py", 10, ()))
        <Stage.RUNS: 'runs'>
    """
    if report.unreadable:
        return Stage.UNREADABLE
    verdicts = {finding.verdict for finding in report.findings}
    return Stage.HUMAN if Verdict.HUMAN in verdicts else Stage.LOOK if Verdict.LOOK in verdicts else Stage.RUNS


def find_blockers(reports: Sequence[FileReport]) -> list[Blocker]:
    """Returns the symbols that need a human; first those whose mend lets most files run.

    Args:
        reports: Reports on files; those that cannot be judged do not count.
    """
    found: dict[str, list[SourceFinding]] = defaultdict(list)
    files: Counter[str] = Counter()
    freed: dict[str, list[str]] = defaultdict(list)
    for report in reports:
        if report.unreadable:
            continue
        human = [finding for finding in report.findings if finding.verdict is Verdict.HUMAN]
        for finding in human:
            found[finding.symbol].append(finding)
        symbols = {finding.symbol for finding in human}
        files.update(symbols)
        if len(symbols) == 1:
            freed[human[0].symbol].append(report.path)
    blockers = [
        Blocker(symbol, each[0].kind.value, each[0].message, len(each), files[symbol], tuple(freed[symbol]))
        for symbol, each in found.items()
    ]
    return sorted(blockers, key=lambda one: (-len(one.freed), -one.files, -one.findings, one.symbol))


def count_by_folder(reports: Sequence[FileReport]) -> dict[str, Counter[Stage]]:
    """Returns the number of files of each stage below each folder, subfolders included.

    Args:
        reports: Reports on files.

    Example:
        >>> reports = [FileReport("a/b/x.py", 1, ()), FileReport("a/y.py", 1, ())]
        >>> {folder: counts[Stage.RUNS] for folder, counts in count_by_folder(reports).items()}
        {'.': 2, 'a': 2, 'a/b': 1}
    """
    counts: dict[str, Counter[Stage]] = defaultdict(Counter)
    for report in reports:
        for folder in PurePath(report.path).parents:
            counts[folder.as_posix()][stage_of(report)] += 1
    return dict(sorted(counts.items(), key=lambda item: PurePath(item[0]).parts))


def environment() -> jinja2.Environment:
    """Returns the environment of the templates beside this module."""
    import jinja2  # takes long to load

    return jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_page(
    reports: Sequence[FileReport], version: str, only: Verdict | None = None, standing: Sequence[FileReport] | None = None
) -> str:
    """Returns one HTML document without any external resource; all text of files is escaped in it.

    Args:
        reports: Reports on files.
        version: Version of the TensorFlow that the files were judged for.
        only: Verdict of the findings that are shown; None for those that need a human or are to be looked at. Stages count all verdicts.
        standing: Reports with the findings of a baseline, too, which count as what stops files; None without a baseline.
    """
    shown = (Verdict.HUMAN, Verdict.LOOK) if only is None else (only,)
    order = list(Stage)
    files = [
        (report, stage_of(report), [finding for finding in report.findings if finding.verdict in shown]) for report in reports
    ]
    files.sort(key=lambda file: (-order.index(file[1]), -len(file[2]), file[0].path))
    blockers = find_blockers(standing or reports) if Verdict.HUMAN in shown else []
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            version=version,
            date=datetime.datetime.now(datetime.timezone.utc),
            stages=Counter(stage for _, stage, _ in files),
            Stage=Stage,
            files=files,
            lines=sum(report.lines for report in reports),
            most=_MOST_FINDINGS,
            blockers=blockers[:_MOST_BLOCKERS],
            new={blocker.symbol: blocker.findings for blocker in find_blockers(reports)},
            more_blockers=max(len(blockers) - _MOST_BLOCKERS, 0),
            folders=count_by_folder(reports),
            only=only,
            left_out=None if standing is None else _count(standing) - _count(reports),
        )
    )


def _count(reports: Sequence[FileReport]) -> int:
    return sum(len(report.findings) for report in reports)
