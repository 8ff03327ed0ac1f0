"""``estimator-bridge check``: finds the parts of old source that run, that the runner replaces and that need a human."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.script_arguments import FILE, add_format, add_options
from estimator_bridge.errors import BridgeError

if TYPE_CHECKING:
    from estimator_bridge.compat.source.checking import FileReport, Judge

_FILES_OF_ONE = 300
"""Files from which further processes are worth their start."""
_EPILOG = """examples:
  estimator-bridge check train.py
  estimator-bridge check --path modern train.py
  estimator-bridge check --path modern --micro train.py
  estimator-bridge check --py2 trainer/
  estimator-bridge check train.ipynb
  estimator-bridge check --format json . > report.json
  estimator-bridge check --format sarif . > check.sarif
  estimator-bridge check --html check.html --exclude tests --only human .
  estimator-bridge check --baseline report.json .

A file is judged as a script, with the modules of its own that it imports; in a folder, each file is judged by itself.
Nothing is run or written, and TensorFlow is not loaded: names are looked up in a table for its installed version.

A notebook is judged as a script of its code cells. Its places have the number of a cell, as Jupyter counts after "Restart & Run All".

exit code: 0 nothing needs a human: run is expected to run it, 1 a human must change something, 2 a path does not exist or a file is not Python.
"""


def add_parser(verbs: Any) -> None:
    """Adds the command."""
    parser = verbs.add_parser(
        "check",
        help="report which lines of a script work, which `run` mends in memory and which a human must change",
        description="Reports for each symbol and line of Python files whether it works under estimator-bridge run.",
        epilog=_EPILOG,
    )
    parser.add_argument("--py2", action="store_true", help="judge for run --py2, which rewrites Python 2 source in memory")
    add_options(parser, "--path")
    parser.add_argument("--micro", action="store_true", help="modern path: also name what run --micro refuses, e.g. batch norm")
    explanation = "text: findings and a table; json: one object; sarif: SARIF 2.1.0 for code scanning; "
    explanation += "github: annotations of GitHub Actions (default: %(default)s)"
    add_format(parser, explanation, "sarif", "github")
    _add_choice(parser)
    paths = parser.add_argument("paths", metavar="PATH", nargs="+", help="a Python file or a notebook, or a folder with them")
    paths.complete = FILE
    parser.set_defaults(execute=execute)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    explanation = (
        "file or folder to leave out, as a pattern of its path or of a part of it, e.g. tests or '*_old.py'; repeatable"
    )
    parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN", help=explanation)
    verdicts = "show findings with this verdict alone; the exit code stays that of all findings"
    parser.add_argument("--only", choices=("human", "look", "mended"), help=verdicts)
    known = "output of an earlier check --format json; only findings that it lacks are shown and decide the exit code"
    for flag, metavar, help_ in (
        ("--baseline", "FILE", known),
        ("--html", "FILE", "also write one page: each script's stage, what stops most scripts, sums by folder"),
    ):
        file = parser.add_argument(flag, type=Path, metavar=metavar, help=help_)
        file.complete = FILE  # type: ignore[attr-defined]


def execute(arguments: argparse.Namespace) -> int:
    """Judges every file and prints the findings."""
    from estimator_bridge.compat.source.checking import find_files
    from estimator_bridge.compat.source.forecast import judge_script
    from estimator_bridge.compat.source.reports import text
    from estimator_bridge.compat.source.reports.baseline import read_baseline, without_known
    from estimator_bridge.compat.source.surface import installed_version
    from estimator_bridge.compat.source.verdicts import Verdict

    if arguments.micro and arguments.path != "modern":
        raise BridgeError("--micro works only on the modern path.", fix="Add --path modern.")
    version = installed_version()
    judge = _judge(arguments.py2)
    found: dict[str, FileReport] = {}
    known = read_baseline(arguments.baseline) if arguments.baseline else {}
    files = find_files(arguments.paths, arguments.exclude)  # checks the paths first
    scripts = {Path(path) for path in arguments.paths if Path(path).is_file()}
    with _judged(judge, [path for path in files if path not in scripts]) as of_folders:
        for path in _with_progress(files):
            reports_on_file = (
                judge_script(judge, path, arguments.path, arguments.micro) if path in scripts else [next(of_folders)]
            )
            for report in reports_on_file:
                found.setdefault(report.path, report)
    reports = list(found.values())
    new = without_known(reports, known)
    if arguments.html is not None:
        from estimator_bridge.compat.source.reports.page import render_page
        from estimator_bridge.parity.report.write import write_page

        only = Verdict(arguments.only) if arguments.only else None
        write_page(arguments.html, render_page(new, version, only, reports if arguments.baseline else None))
    _print(_only(new, arguments.only), version, arguments.format)
    if any(report.unreadable and report.findings for report in new):
        return 2
    return 1 if text.total(new)[Verdict.HUMAN] else 0


def _judge(python2: bool) -> Judge:
    from estimator_bridge.compat.source.checking import Judge
    from estimator_bridge.compat.source.surface import installed_version, load_surface
    from estimator_bridge.legacy.upstream_contrib import offered

    return Judge(load_surface(installed_version()), offered, python2)


@contextlib.contextmanager
def _judged(judge: Judge, files: Sequence[Path]) -> Iterator[Iterator[FileReport]]:
    """Yields the reports of files, in their order; several processes judge many files."""
    processes = os.cpu_count() or 1
    if len(files) < _FILES_OF_ONE or processes == 1:
        yield map(judge.file, files)
        return
    with multiprocessing.get_context("spawn").Pool(processes, _start, (judge.python2,)) as pool:
        yield pool.imap(_of_file, files, chunksize=16)


_judges: list[Judge] = []


def _start(python2: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    _judges[:] = [_judge(python2)]


def _of_file(path: Path) -> FileReport:
    return _judges[0].file(path)


def _only(reports: list[FileReport], verdict: str | None) -> list[FileReport]:
    if verdict is None:
        return reports
    kept = [tuple(finding for finding in report.findings if finding.verdict.value == verdict) for report in reports]
    return [dataclasses.replace(report, findings=findings) for report, findings in zip(reports, kept, strict=True)]


def _print(reports: Sequence[FileReport], version: str, form: str) -> None:
    from estimator_bridge.compat.source.reports import sarif, text

    if form == "text":
        text.print_reports(reports, version, make_console())
    elif form == "github":
        sys.stdout.writelines(f"{line}\n" for line in sarif.github_annotations(reports))
    else:
        values = sarif.as_sarif(reports) if form == "sarif" else text.as_data(reports, version)
        sys.stdout.write(json.dumps(values, indent=1) + "\n")


def _with_progress(files: list[Path]) -> Iterable[Path]:
    """Returns the files, with a bar on stderr if that is a terminal and there are many."""
    if not sys.stderr.isatty() or len(files) < 10:
        return files
    from rich.console import Console
    from rich.progress import track

    return track(files, description="checking", console=Console(stderr=True), transient=True)
