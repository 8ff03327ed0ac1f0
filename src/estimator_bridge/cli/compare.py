"""``estimator-bridge compare``: both paths side by side, a verdict, a report and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from pathlib import Path
from typing import Any

from estimator_bridge.cli.script_arguments import DIRECTORY, add_python2, add_replicas, add_script, script_of
from estimator_bridge.parity.result import Thresholds

_EPILOG = """examples:
  estimator-bridge compare train.py
  estimator-bridge compare --out report train.py --train_steps=500
  estimator-bridge compare --free-run train.py
  estimator-bridge compare --replicas 2 --format json train.py

exit code: 0 within the thresholds, 1 outside, 2 when the two paths could not be compared.
The script's model_dir is read, never written: both sides keep theirs in a temporary folder.
"""


def add_parser(verbs: Any) -> None:
    """Adds the verb."""
    parser = verbs.add_parser(
        "compare",
        help="run a script on both paths and say whether they train alike",
        description="Runs a script on the legacy and on the modern path, from the same initial values and on the same batches.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    out = parser.add_argument(
        "--out",
        type=Path,
        default=Path("parity-report"),
        metavar="DIR",
        help="folder of report.html and report.json (default: %(default)s)",
    )
    out.complete = DIRECTORY
    parser.add_argument(
        "--free-run", action="store_true", help="each side runs the script's own input pipeline, shuffle included"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="on stdout: tables or report.json")
    add_replicas(parser)
    add_python2(parser)
    _add_thresholds(parser)
    add_script(parser)
    parser.set_defaults(execute=execute)


def _add_thresholds(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("thresholds", "a loss or metric is equal when rel_diff OR abs_diff is within")
    default = Thresholds()
    group.add_argument("--rel-diff", type=_threshold, default=default.rel, metavar="X", help="default: %(default)g")
    group.add_argument("--abs-diff", type=_threshold, default=default.abs, metavar="X", help="default: %(default)g")
    group.add_argument(
        "--variable-abs-diff",
        type=_threshold,
        default=default.variable_abs,
        metavar="X",
        help="of the final variables; default: %(default)g",
    )


def _threshold(text: str) -> float:
    with contextlib.suppress(ValueError):
        if float(text) >= 0:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number of 0 or more, received {text!r}")


def execute(arguments: argparse.Namespace) -> int:
    """Compares, writes the report, prints the result."""
    from estimator_bridge.parity.progress import shown_progress
    from estimator_bridge.parity.report.write import check_writable, write_report
    from estimator_bridge.parity.run import compare

    script = script_of(arguments)
    script.check()
    check_writable(arguments.out)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what was started is ended
    with shown_progress() as watch:
        result = compare(
            script,
            replaying=not arguments.free_run,
            replicas=arguments.replicas,
            thresholds=Thresholds(arguments.rel_diff, arguments.abs_diff, arguments.variable_abs_diff),
            watch=watch,
        )
    write_report(result, arguments.out)
    _print(result, arguments)
    return result.exit_code


def _print(result: Any, arguments: argparse.Namespace) -> None:
    from rich.console import Console

    console = Console(emoji=False)  # a line number between colons is no emoji
    if arguments.format == "json":
        console.file.write((arguments.out / "report.json").read_text(encoding="utf-8"))
        return
    from estimator_bridge.parity.report.terminal import print_report

    print_report(result, console)
    console.print(f"Report: {arguments.out / 'report.html'}", soft_wrap=True, highlight=False)
