"""``estimator-bridge plan``: shows what a plan of a parallel training does to a script, without training."""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.parallel_plan import add_plan, plan_of
from estimator_bridge.cli.script_arguments import FILE, add_format, add_options, add_script, number, script_of
from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.parallel.plans.plan import shares_of

if TYPE_CHECKING:
    from rich.console import Console

    from estimator_bridge.modern.parallel.estimates import PlanEstimate
    from estimator_bridge.modern.parallel.extrapolation import Extrapolation
    from estimator_bridge.modern.parallel.plans.plan import ParallelPlan
    from estimator_bridge.script.run import Script

_EPILOG = """examples:
  estimator-bridge plan --mesh model=2 train.py --batch_size=256
  estimator-bridge plan --plan plan.toml train.py
  estimator-bridge plan --mesh pipeline=2 --micro 8 train.py
  estimator-bridge plan --micro 8 --rows 256 train.py
  estimator-bridge plan --mesh model=4 --format json train.py
  estimator-bridge plan --plan plan.toml --out plan.svg train.py
  estimator-bridge plan --micro 8 --speeds 6.1,2.2 train.py
  estimator-bridge plan --step-seconds 0.4 --rows 256 --bandwidth 12 --workers 2,4,8 train.py

The script runs until it trains. Its training graph is built and placed, but nothing is computed, and only --out is written.

exit code: 0 the plan can be carried out, 2 it cannot; the message names the script's line. --format json has it as "refused".
"""


_COUNT = number(int, "a whole number of 1 or more", 1)
_PICTURES = (".html", ".svg")
_PICTURE_COLUMNS = 130


def add_parser(verbs: Any) -> None:
    """Adds the command."""
    parser = verbs.add_parser(
        "plan",
        help="show on which device each variable of a script would be, without training",
        description="Shows devices and bytes of a script's variables, slots, activations and crossing tensors under a plan, without training.",
        epilog=_EPILOG,
    )
    add_plan(parser)
    add_format(parser, "text: tables; json: one object (default: %(default)s)")
    picture = parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write the tables as a picture, too: FILE.svg or FILE.html"
    )
    picture.complete = FILE
    parser.add_argument("--all", action="store_true", help="list every variable, however many there are")
    parser.add_argument(
        "--speeds",
        type=lambda text: [number(float, "numbers above 0", 1e-9)(one) for one in text.split(",")],
        metavar="A,B,...",
        help="steps per second that each worker reaches alone, as run logs them: shows the shares of --micro batches with which a step ends "
        "earliest",
    )
    _add_extrapolation(parser)
    add_options(parser, "--py2", "--tf-version", "--fetch-contrib", "--verbose")
    add_script(parser)
    parser.set_defaults(execute=execute)


def _add_extrapolation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "extrapolation",
        "step times on more devices, from a step that you have measured on one; all three options, and perhaps --workers; --rows alone shows "
        "the bytes of activations",
    )
    amount = number(float, "a number above 0", 1e-9)
    group.add_argument("--step-seconds", type=amount, metavar="S", help="seconds of a step on one device, as run logs them")
    group.add_argument("--rows", type=_COUNT, metavar="N", help="rows of a batch")
    group.add_argument(
        "--bandwidth", type=amount, metavar="GB", help="gigabytes per second between devices, and between workers"
    )
    group.add_argument(
        "--workers",
        type=lambda text: [_COUNT(one) for one in text.split(",")],
        default=[1, 2, 4, 8],
        metavar="N,...",
        help="numbers of workers, each with the mesh and batches of its own (default: 1,2,4,8)",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Runs the script until it trains, and prints the estimate, or as JSON why there is none."""
    try:
        return _execute(arguments)
    except BridgeError as error:
        if arguments.format == "json":
            _write_json({"can_be_carried_out": False, "refused": [error.as_dict()]})
        raise


def _execute(arguments: argparse.Namespace) -> int:
    script, plan = script_of(arguments), plan_of(arguments)
    script.check_syntax()
    measured = _measured(arguments)
    if measured and (plan.elastic or plan.shares):
        raise NotSupportedError(
            "Step times of a plan whose steps take several batches are not extrapolated.",
            expected="a plan without [elastic] and shares",
            fix="Leave these out: N workers with a batch each take as long as an elastic plan with micro = N on N workers.",
        )
    _check_picture(arguments.out)
    _check_speeds(arguments.speeds, plan)
    found = _estimated(script, plan, arguments.rows)
    more = _extrapolated(found, plan, measured, arguments.workers)
    console = _console(arguments.format, arguments.out)
    _print(console, found, arguments.all, arguments.rows)
    if plan.sharded_state:
        _print_workers(console, found, plan.data)
    if plan.data:
        _print_sent(console, found, plan.data, arguments.rows)
    if plan.elastic or plan.shares:
        _print_whole_batches(console, plan)
    if arguments.speeds:
        _print_shares(console, arguments.speeds, plan.micro)
    if more:
        _print_extrapolated(console, more)
    if arguments.out is not None:
        _write_picture(console, arguments.out, f"estimator-bridge plan {plan.placement} {script}")
    if arguments.format == "json":  # last: a mistake before it is the only object
        shares = {"shares": shares_of(arguments.speeds, plan.micro)} if arguments.speeds else {}
        workers = {"worker_slot_bytes": _slots_of_a_worker(found, plan.data)} if plan.sharded_state and plan.data else {}
        extrapolated = [dataclasses.asdict(one) | {"seconds": one.seconds} for one in more]
        printed = found.as_dict(arguments.rows) | {"extrapolated": extrapolated} | shares | workers
        _write_json({"can_be_carried_out": True, "refused": []} | printed)
    return 0


def _write_json(printed: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(printed, indent=1) + "\n")


def _check_speeds(speeds: Sequence[float] | None, plan: ParallelPlan) -> None:
    if speeds and (plan.shares or plan.micro < len(speeds)):
        raise BridgeError(
            "The batches of a step cannot be shared between these workers.",
            expected=f"--micro {len(speeds)} or more, one batch for each worker, and a plan without shares",
            received=f"{len(speeds)} speeds, {plan.micro} batches" + (f", shares = {list(plan.shares)}" if plan.shares else ""),
            fix="Give --micro a number of batches that a step should take in all.",
        )


def _check_picture(out: Path | None) -> None:
    if out is not None and (out.suffix not in _PICTURES or not out.parent.is_dir()):
        raise BridgeError(
            "The picture of the plan cannot be written.",
            expected=f"a file that ends with {' or '.join(_PICTURES)}, in an existing folder",
            received=out,
            fix="Choose another --out.",
        )


def _console(form: str, out: Path | None) -> Console:
    """Makes the console for the tables; with JSON on the standard output it prints nothing."""
    from rich.console import Console

    if form != "json" and out is None:
        return make_console()
    file, width = io.StringIO() if form == "json" else None, _PICTURE_COLUMNS if out is not None else None
    return Console(emoji=False, record=out is not None, file=file, width=width)


def _write_picture(console: Console, out: Path, title: str) -> None:
    text = console.export_svg(title=title) if out.suffix == ".svg" else console.export_html()
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BridgeError(
            "The picture of the plan cannot be written.", received=f"{out}: {error.strerror}", fix="Choose another --out."
        ) from None


def _measured(arguments: argparse.Namespace) -> tuple[float, float, int] | None:
    """Returns seconds, bytes per second and rows; None if no extrapolation was asked for.

    Raises:
        BridgeError: Some of them are missing.
    """
    given = {"--step-seconds": arguments.step_seconds, "--bandwidth": arguments.bandwidth, "--rows": arguments.rows}
    missing = [flag for flag, value in given.items() if value is None]
    if arguments.step_seconds is None and arguments.bandwidth is None:
        return None
    if missing:
        raise BridgeError(
            "An extrapolation starts from a step that was measured.",
            expected=", ".join(given),
            received="no " + " and no ".join(missing),
            fix="Train on one device first: run --path modern logs global_step/sec, whose inverse is --step-seconds.",
        )
    return arguments.step_seconds, arguments.bandwidth * 1e9, arguments.rows


def _extrapolated(
    found: PlanEstimate, plan: ParallelPlan, measured: tuple[float, float, int] | None, workers: Sequence[int]
) -> list[Extrapolation]:
    from estimator_bridge.modern.parallel.extrapolation import Measured, extrapolate

    return extrapolate(found, Measured(*measured), workers, plan.sharded_state) if measured else []


def _estimated(script: Script, plan: ParallelPlan, rows: int | None) -> PlanEstimate:
    from estimator_bridge.script.run import run_modern
    from estimator_bridge.script.tracebacks import naming_lines

    def make_engine() -> Any:
        from estimator_bridge.modern.planning import PlanningEngine

        return PlanningEngine(plan=plan, rows=rows)

    try:
        with naming_lines():
            run_modern(script, make_engine)
    except SystemExit as error:
        found: PlanEstimate | None = getattr(error, "found", None)
        if found is not None:
            return found
    raise BridgeError(
        "The script ended before it trained, so there is no training to plan.",
        expected="train or train_and_evaluate of a tf.estimator.Estimator",
        fix="Give the script the arguments with which it trains.",
    )


def _print(console: Console, found: PlanEstimate, everything: bool, rows: int | None) -> None:
    from rich.bar import Bar
    from rich.table import Table

    from estimator_bridge.compat.checkpoint.inspection.terminal import size

    total = sum(map(sum, found.held().values())) or 1
    more = ["activations"] if rows else []
    devices = Table("device", "variables", "slots", "share", "", *more, title="Bytes of each device", box=None)
    for name, (variables, slots) in found.held().items():
        bar = Bar(total, 0, variables + slots, width=20, color="cyan")
        kept = [size(round(found.kept(rows)[name]))] if rows else []
        devices.add_row(_short(name), size(variables), size(slots), f"{(variables + slots) / total:.1%}", bar, *kept)
    console.print(devices)
    shown = sorted(found.variables, key=lambda one: -one.variable_bytes - one.slot_bytes)
    table = Table(title="Variables, largest first", box=None)
    for heading in ("variable", "shape", "bytes", "slots", "device", "chosen by"):
        table.add_column(heading, overflow="fold")
    for one in shown if everything else shown[:20]:
        table.add_row(one.name, one.shape, size(one.variable_bytes), size(one.slot_bytes), _short(one.device), one.chosen_by)
    console.print(table)
    if len(shown) > 20 and not everything:
        console.print(f"{len(shown) - 20} more variables; --all lists them.")
    each = "micro-batch" if found.micro > 1 else "step"
    for tensors in (*found.activations, *found.crossings):
        unknown = f", and {_tensors(tensors.unknown)} of unknown size" if tensors.unknown else ""
        stays = tensors.source == tensors.target
        what = "keeps {} for the gradients" if stays else f"sends {{}} to {_short(tensors.target)}"
        console.print(
            f"{_short(tensors.source)} {what.format(_tensors(tensors.tensors))} in each {each}: "
            f"{size(tensors.step_bytes)}, and {size(tensors.row_bytes)} for each row{unknown}.",
            highlight=False,
            soft_wrap=True,
        )
    if not found.crossings:
        console.print("No tensor crosses between devices.")
    if found.micro > 1:
        _print_micro(console, found, rows)
    if found.stages:
        _print_stages(console, found)


def _tensors(number: int) -> str:
    return f"{number} tensor{'s' * (number != 1)}"


def _print_micro(console: Console, found: PlanEstimate, rows: int | None) -> None:
    from estimator_bridge.compat.checkpoint.inspection.terminal import size

    line = f"A micro-batch has 1/{found.micro} of the rows of a batch"
    if rows and found.whole:
        part = sum(one.bytes_of(rows / found.micro) for one in found.activations)
        line += f", and keeps {size(round(part))} of activations; the whole batch would keep {size(found.whole)}"
        line += f", {found.whole / part:.1f} times as many" if part else ""
    console.print(f"{line}.", highlight=False, soft_wrap=True)


def _print_workers(console: Console, found: PlanEstimate, workers: int | None) -> None:
    from estimator_bridge.compat.checkpoint.inspection.terminal import size

    part = size(_slots_of_a_worker(found, workers)) if workers else "an N-th"
    whole = size(_slots_of_a_worker(found, 1))
    console.print(
        f"Each of {workers or 'N'} workers keeps about {part} of the {whole} of slots.", highlight=False, soft_wrap=True
    )


def _print_sent(console: Console, found: PlanEstimate, workers: int, rows: int | None) -> None:
    from estimator_bridge.compat.checkpoint.inspection.terminal import size

    sent = size(round(found.sent.bytes_of(rows or 0)))
    sparse = "" if rows or not found.sent.row_bytes else ", and more for each row"
    console.print(f"{workers} workers add up {sent} of gradients in each step{sparse}.", highlight=False, soft_wrap=True)


def _slots_of_a_worker(found: PlanEstimate, workers: int) -> int:
    return sum(slots for _, slots in found.held().values()) // workers


def _print_whole_batches(console: Console, plan: ParallelPlan) -> None:
    numbers = [len(plan.shares)] if plan.shares else plan.workers
    takes = {1: "1 worker takes"} | {number: f"{number} workers take" for number in numbers if number > 1}
    shares = "; ".join(f"{takes[number]} {', '.join(map(str, plan.step_batches(number)))}" for number in numbers)
    console.print(f"A step takes {plan.micro} whole batches: {shares}.", highlight=False, soft_wrap=True)


def _print_shares(console: Console, speeds: Sequence[float], batches: int) -> None:
    shares = shares_of(speeds, batches)
    seconds = max(share / speed for share, speed in zip(shares, speeds, strict=True))
    equal = batches / len(speeds) / min(speeds)
    console.print(
        f"shares = {list(shares)} ends a step earliest: the batches take {seconds:.3g} s, equal shares {equal:.3g} s (extrapolated).",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )


def _print_extrapolated(console: Console, more: Sequence[Extrapolation]) -> None:
    from rich.table import Table

    from estimator_bridge.compat.checkpoint.inspection.terminal import size

    title = "Extrapolated, not measured: seconds of a step"
    table = Table(title=title, box=None)
    for heading in ("workers", "devices", "compute", "between devices", "between workers", "step", "rows/s", "fullest device"):
        table.add_column(heading, justify="right", overflow="fold")
    for one in more:
        seconds = (one.compute_seconds, one.device_seconds, one.worker_seconds, one.seconds)
        row = [str(one.workers), str(one.devices), *(f"{value:.3g}" for value in seconds)]
        table.add_row(*row, f"x {one.times_as_fast:.2f}", size(round(one.bytes)))
    console.print(table)


def _print_stages(console: Console, found: PlanEstimate) -> None:
    from rich.table import Table

    stages = Table(title="Stages of the pipeline", box=None)
    for heading in ("stage", "device", "begins at", "computation", "micro-batches held"):
        stages.add_column(heading, overflow="fold")
    for position, one in enumerate(found.stages):
        stages.add_row(
            str(position), ", ".join(map(_short, one.devices)), one.begins, f"{one.share:.0%}", str(one.micro_batches)
        )
    console.print(stages)
    fastest = len(found.stages) * (1 - found.bubble)
    console.print(
        f"With {found.micro} micro-batches each device waits {found.bubble:.0%} of a step if stages take equally long: at most "
        f"{fastest:.2f} times as fast as one device.",
        highlight=False,
        soft_wrap=True,
    )


def _short(device: str) -> str:
    return device.removeprefix("/device:")
