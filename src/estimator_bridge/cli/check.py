"""``estimator-bridge check``: what of old source runs, what the runner mends and what needs a human, without running it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from estimator_bridge.cli.script_arguments import FILE

_EPILOG = """examples:
  estimator-bridge check train.py
  estimator-bridge check --py2 trainer/
  estimator-bridge check --format json . > report.json

Nothing is run or written, and TensorFlow is not loaded: names are looked up in a table of the installed version.

exit code: 0 nothing needs a human, 1 something does, 2 a path is not there or a file is no Python: a notebook, for one.
"""


def add_parser(verbs: Any) -> None:
    """Adds the verb."""
    parser = verbs.add_parser(
        "check",
        help="see what of old source runs, what run mends and what needs a human, without running it",
        description="Judges Python files by symbol and line for estimator-bridge run, without running anything.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--py2", action="store_true", help="judge for run --py2, which mends Python 2")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="lines and a table, or one JSON object")
    paths = parser.add_argument("paths", metavar="PATH", nargs="+", help="a Python file, or a folder of them")
    paths.complete = FILE
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Judges every file."""
    from estimator_bridge.compat.source import output
    from estimator_bridge.compat.source.checking import Judge, find_files
    from estimator_bridge.compat.source.surface import installed_version, load_surface
    from estimator_bridge.compat.source.verdicts import Verdict
    from estimator_bridge.legacy.contrib import offered

    version = installed_version()
    judge = Judge(load_surface(version), offered, arguments.py2)
    reports = [judge.file(path) for path in _with_progress(find_files(arguments.paths))]
    if arguments.format == "json":
        sys.stdout.write(json.dumps(output.as_data(reports, version), indent=1) + "\n")
    else:
        from rich.console import Console

        output.print_reports(reports, version, Console())
    if any(report.unreadable for report in reports):
        return 2
    return 1 if output.total(reports)[Verdict.HUMAN] else 0


def _with_progress(files: list[Path]) -> Iterable[Path]:
    """A bar on stderr, where that is a terminal and there is something to wait for."""
    if not sys.stderr.isatty() or len(files) < 10:
        return files
    return _shown(files)


def _shown(files: list[Path]) -> Iterator[Path]:
    from rich.console import Console
    from rich.progress import track

    yield from track(files, description="checking", console=Console(stderr=True), transient=True)
