"""``estimator-bridge inspect``: shows the contents of a checkpoint, without TensorFlow."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.script_arguments import add_format

_EPILOG = """examples:
  estimator-bridge inspect model_dir
  estimator-bridge inspect model_dir/model.ckpt-1000 --all
  estimator-bridge inspect model_dir/model.ckpt-1000 --format json
  estimator-bridge inspect model_dir/model.ckpt-1000 --verify
  estimator-bridge inspect old/model.ckpt-1000 --diff new/model.ckpt-1000

exit code: 0 the checkpoint was shown, 1 --diff found differences, 2 there is no checkpoint, or it is damaged.
Nothing is written. Tensors are read only for --diff and --verify.
"""


def add_parser(verbs: Any) -> None:
    """Adds the parser of ``inspect``."""
    parser = verbs.add_parser(
        "inspect",
        help="show the contents of a checkpoint",
        description="Shows the contents of a checkpoint: kind, step, data files, variables, and the optimizers' slots.",
        epilog=_EPILOG,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a prefix, an .index file, a model_dir or a SavedModel")
    parser.add_argument("--all", action="store_true", help="list every variable, however many there are")
    parser.add_argument("--verify", action="store_true", help="read every tensor and verify its checksum")
    parser.add_argument("--diff", metavar="OTHER", help="compare the values with those of another checkpoint")
    parser.add_argument(
        "--abs-diff",
        type=float,
        default=0.0,
        metavar="X",
        help="with --diff: largest difference that counts as equal (default: %(default)g)",
    )
    add_format(parser, "print tables or one JSON object (default: text)")
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Shows, compares or verifies a checkpoint."""
    if arguments.diff is not None:
        return _diff(arguments)
    from estimator_bridge.compat.checkpoint.inspection.summary import summarize, verify_all
    from estimator_bridge.compat.checkpoint.writing.opening import open_checkpoint

    with open_checkpoint(arguments.checkpoint) as index:
        summary = summarize(index, shown_as=arguments.checkpoint)
        verification = None
        if arguments.verify:
            with _progress("verifying", sum(entry.size for _, entry in index.stored())) as advance:
                verification = verify_all(index, advance)
    if arguments.format == "json":
        _write_json(summary.to_json() | ({"verified": vars(verification)} if verification else {}))
        return 0
    from estimator_bridge.compat.checkpoint.inspection.terminal import print_summary, size

    console = make_console()
    print_summary(summary, console, arguments.all)
    if verification:
        unchecked = f"; {len(verification.unchecked)} without a checksum" if verification.unchecked else ""
        num_bytes = size(verification.num_bytes)
        console.print(f"Verified: {verification.num_tensors:,} tensors, {num_bytes}{unchecked}", highlight=False)
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    from estimator_bridge.compat.checkpoint.inspection.difference import differences
    from estimator_bridge.compat.checkpoint.reading.values import check_shards
    from estimator_bridge.compat.checkpoint.writing.opening import open_checkpoint

    with open_checkpoint(arguments.checkpoint) as one, open_checkpoint(arguments.diff) as other:
        check_shards(one)
        check_shards(other)
        with _progress("comparing", sum(map(one.num_bytes, one.entries))) as advance:
            found = list(differences(one, other, advance))
    equal = all(row.within(arguments.abs_diff) for row in found)
    if arguments.format == "json":
        _write_json({"equal": equal, "variables": [row.to_json() for row in found]})
    else:
        from estimator_bridge.compat.checkpoint.inspection.terminal import print_differences

        print_differences(found, arguments.abs_diff, make_console())
    return 0 if equal else 1


@contextlib.contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Shows a progress bar on stderr if that is a terminal and there is much to read."""
    if not sys.stderr.isatty() or total < 100_000_000:
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda size: progress.advance(task, size)


def _write_json(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, indent=1, allow_nan=False) + "\n")
