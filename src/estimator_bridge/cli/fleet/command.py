"""``estimator-bridge fleet``: checks and compares all pipelines of a fleet.toml, and shows how far each has come."""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.script_arguments import DIRECTORY, FILE, add_format, number
from estimator_bridge.errors import BridgeError

if TYPE_CHECKING:
    from estimator_bridge.fleet.overview import Row
    from estimator_bridge.fleet.plan import Pipeline
    from estimator_bridge.fleet.results import Result

_EPILOG = """examples:
  estimator-bridge fleet init . > fleet.toml
  estimator-bridge fleet check
  estimator-bridge fleet compare -j 2
  estimator-bridge fleet compare --only ads-train --again
  estimator-bridge fleet report --junit fleet.xml --markdown fleet.md

fleet.toml has a table [[pipeline]] for each script, with name, script, folder, arguments, owner, rewrite, thresholds and waivers;
[defaults] counts for all. A comparison that was interrupted or killed begins again, those that ended stay: they run again when the
script or its row changes, or with --again.

exit code: 0 all are as wanted, 1 some are not, 2 bad input; each ACTION --help says more.
"""
_EQUAL = "exit code: 0 all pipelines are equal, or their differences are waived, 1 some are not, 2 bad input."
_EXIT_CODES = {
    "init": "exit code: 0 printed, 2 there is no folder or no such script.",
    "check": "exit code: 0 no script needs a human, 1 some do, 2 bad input.",
    "compare": _EQUAL,
    "report": _EQUAL,
}
_ACTIONS = {
    "init": (
        "print a fleet.toml for the Estimator scripts of a folder",
        [
            "estimator-bridge fleet init . > fleet.toml",
            "estimator-bridge fleet init trainers > fleet.toml",
            "estimator-bridge fleet init ~/pipelines",
        ],
    ),
    "check": (
        "judge every script, without running any",
        [
            "estimator-bridge fleet check",
            "estimator-bridge fleet check --only ads-train",
            "estimator-bridge fleet check --format json team/fleet.toml",
        ],
    ),
    "compare": (
        "run every comparison that has not ended yet, then report",
        [
            "estimator-bridge fleet compare -j 2",
            "estimator-bridge fleet compare --only ads-train --again",
            "estimator-bridge fleet compare --out results --junit fleet.xml team/fleet.toml",
        ],
    ),
    "report": (
        "write the dashboard from the results that are there",
        [
            "estimator-bridge fleet report",
            "estimator-bridge fleet report --junit fleet.xml --markdown fleet.md",
            "estimator-bridge fleet report --format json --out results",
        ],
    ),
}
"""Action -> what it does, and examples."""


def add_parser(verbs: Any) -> None:
    """Adds the command."""
    parser = verbs.add_parser(
        "fleet",
        help="check and compare many pipelines, and show how far each has come",
        description="Checks and compares all pipelines of a fleet.toml, and writes a dashboard of their stages.",
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    for name, (explanation, examples) in _ACTIONS.items():
        lines = "\n  ".join(examples)
        action = actions.add_parser(
            name,
            help=explanation,
            description=f"{explanation.capitalize()}.",
            epilog=f"examples:\n  {lines}\n\n{_EXIT_CODES[name]}",
        )
        _add_action(action, name)


def _add_action(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "init":
        folder: Any = parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder to search")
        folder.complete = DIRECTORY
        parser.set_defaults(execute=_init)
        return
    file = parser.add_argument(
        "fleet", type=Path, nargs="?", default=Path("fleet.toml"), metavar="FLEET", help="default: %(default)s"
    )
    file.complete = FILE  # type: ignore[attr-defined]
    parser.add_argument("--only", action="append", metavar="NAME", help="only this pipeline; repeatable")
    out = parser.add_argument("--out", type=Path, default=Path("fleet-results"), metavar="DIR", help="default: %(default)s")
    out.complete = DIRECTORY  # type: ignore[attr-defined]
    for flag, content in (("--junit", "JUnit XML"), ("--markdown", "a table in Markdown")):
        summary = parser.add_argument(flag, type=Path, metavar="FILE", help=f"also write the stages as {content}")
        summary.complete = FILE  # type: ignore[attr-defined]
    if name == "compare":
        jobs = number(int, "a whole number of 1 or more", 1)
        parser.add_argument(
            "-j", "--jobs", type=jobs, default=1, metavar="N", help="comparisons at once (default: %(default)s)"
        )
        parser.add_argument("--again", action="store_true", help="also run comparisons that have ended")
    add_format(parser, "text: a line for each pipeline; json: one object (default: %(default)s)")
    parser.set_defaults(execute=_execute)


def _init(arguments: argparse.Namespace) -> int:
    from estimator_bridge.compat.source.checking import find_files
    from estimator_bridge.fleet.plan import as_toml

    root: Path = arguments.folder
    scripts = [path for path in find_files([str(root)]) if _is_script(path)]
    if not scripts:
        raise BridgeError("There is no script that uses Estimators.", expected="a folder with such scripts", received=root)
    sys.stdout.write(as_toml(scripts, root))
    return 0


def _is_script(path: Path) -> bool:
    try:
        text = path.read_bytes()
    except OSError:
        return False
    return b"stimator" in text and (path.suffix == ".ipynb" or b"__main__" in text or b".app.run(" in text)


def _execute(arguments: argparse.Namespace) -> int:
    from estimator_bridge.fleet.plan import read_fleet
    from estimator_bridge.fleet.results import Stage

    pipelines = _chosen(read_fleet(arguments.fleet), arguments.only)
    if arguments.action == "compare":
        _compare(pipelines, arguments)
    rows = _rows(pipelines, arguments)
    _write(rows, arguments)
    _print(rows, arguments)
    if arguments.action == "check":
        return int(any(row.blockers for row in rows))
    return int(any(row.stage not in {Stage.EQUAL, Stage.KERAS, Stage.DONE} for row in rows))


def _chosen(pipelines: list[Pipeline], names: Sequence[str] | None) -> list[Pipeline]:
    known = [pipeline.name for pipeline in pipelines]
    for name in names or ():
        if name not in known:
            raise BridgeError("The fleet has no such pipeline.", expected=", ".join(known), received=name)
    return [pipeline for pipeline in pipelines if not names or pipeline.name in names]


def _compare(pipelines: Sequence[Pipeline], arguments: argparse.Namespace) -> None:
    from estimator_bridge.fleet.comparisons import Comparisons
    from estimator_bridge.fleet.results import key_of, read_results

    known = read_results(arguments.out, pipelines)
    waiting = [one for one in pipelines if arguments.again or one.name not in known or known[one.name].key != key_of(one)]
    _say(_estimate(pipelines, waiting, known, arguments.jobs))
    lock, left = threading.Lock(), list(waiting)

    def report(pipeline: Pipeline, result: Result) -> None:
        with lock:
            left.remove(pipeline)
            known[pipeline.name] = result
            line = f"{len(waiting) - len(left)} of {len(waiting)}: {pipeline.name}: {result.verdict}, {result.seconds:,.0f} s"
            expected = _expected(left, known, arguments.jobs)
            _say(f"{line}; left: {expected}" if expected else line)

    Comparisons(arguments.out).run(waiting, arguments.jobs, report)


def _estimate(pipelines: Sequence[Pipeline], waiting: Sequence[Pipeline], known: dict[str, Result], jobs: int) -> str:
    from rich.filesize import decimal

    parts = [f"{len(waiting)} of {len(pipelines)} pipelines to compare, {jobs} at once"]
    parts += filter(None, [_expected(waiting, known, jobs)])
    limit = sum(one.timeout * (one.retries + 1) for one in waiting) / jobs
    parts.append(f"at most {limit / 60:,.0f} min by their limits")
    free = shutil.disk_usage(tempfile.gettempdir()).free
    parts.append(f"{decimal(free)} are free for recordings, which go after each comparison")
    largest = sorted(result.recorded for result in known.values())[-jobs:]
    if waiting and any(largest):
        parts.append(f"they need about {decimal(sum(largest))} at once, by earlier sizes")
    return "; ".join(parts)


def _expected(waiting: Sequence[Pipeline], known: dict[str, Result], jobs: int) -> str:
    """Returns how long comparisons are expected to take; empty before the first result, or if none is left."""
    if not (waiting and known):
        return ""
    mean = sum(result.seconds for result in known.values()) / len(known)
    total = sum(known[one.name].seconds if one.name in known else mean for one in waiting) / jobs
    return f"about {total / 60:,.0f} min by earlier durations"


def _rows(pipelines: Sequence[Pipeline], arguments: argparse.Namespace) -> list[Row]:
    from estimator_bridge.fleet.checks import find_blockers
    from estimator_bridge.fleet.overview import Row
    from estimator_bridge.fleet.results import judge, read_results

    known = read_results(arguments.out, pipelines)
    rows = []
    for pipeline, blockers in zip(pipelines, find_blockers(pipelines), strict=True):
        result = known.get(pipeline.name)
        stage, note = judge(pipeline, result, bool(blockers), datetime.datetime.now(datetime.timezone.utc).date())
        rows.append(Row(pipeline, stage, note, result, tuple(blockers)))
    return rows


def _write(rows: Sequence[Row], arguments: argparse.Namespace) -> None:
    from estimator_bridge.fleet import overview
    from estimator_bridge.fleet.results import add_to_history
    from estimator_bridge.parity.report.write import check_page, write_page

    index = [] if arguments.only else [arguments.out / "index.html"]
    for path in (*index, *filter(None, (arguments.junit, arguments.markdown))):
        check_page(path)
    if not arguments.only:  # a part of the fleet is no day of its history
        stages = {row.pipeline.name: row.stage for row in rows}
        history = add_to_history(arguments.out, stages, datetime.datetime.now(datetime.timezone.utc))
        write_page(arguments.out / "index.html", overview.render_page(rows, history, arguments.out))
    if arguments.junit is not None:
        write_page(arguments.junit, overview.render_junit(rows, arguments.action == "check"))
    if arguments.markdown is not None:
        write_page(arguments.markdown, overview.render_markdown(rows))


def _print(rows: Sequence[Row], arguments: argparse.Namespace) -> None:
    from estimator_bridge.fleet.overview import as_data

    if arguments.format == "json":
        sys.stdout.write(json.dumps(as_data(rows), indent=1) + "\n")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("pipeline", "stage", "what to know")
    for row in rows:
        table.add_row(Text(row.pipeline.name), row.stage.value, Text(row.message.split("\n", 1)[0]))
    console = make_console()
    console.print(table)
    if not arguments.only:
        console.print(f"Dashboard: {arguments.out / 'index.html'}", soft_wrap=True, highlight=False, markup=False)


def _say(line: str) -> None:
    sys.stderr.write(f"estimator-bridge: {line}\n")
    sys.stderr.flush()
