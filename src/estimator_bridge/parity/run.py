"""Runs both sides, one after the other, each in its own process."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import itertools
import json
import math
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_bridge import __version__
from estimator_bridge.compat.source.notebooks.cells import is_notebook
from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.parallel.plans.plan import NOT_PARALLEL, ParallelPlan
from estimator_bridge.parity.causes.cause import CauseName
from estimator_bridge.parity.clusters.plan import ClusterPlan
from estimator_bridge.parity.noise import between_runs, describe, noise_floor
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.reference.cells import write_cells
from estimator_bridge.parity.reference.three_sides import check_reference, with_reference
from estimator_bridge.parity.result import ParityResult, Thresholds
from estimator_bridge.parity.resuming import remember, resumed_folder, seconds_of_ended
from estimator_bridge.parity.rewrite.plan import RewritePlan, check_keras
from estimator_bridge.parity.side import ALONE, GO, Order
from estimator_bridge.script.quiet import quiet_start_up
from estimator_bridge.script.run import Script

SIDES = ("legacy", "modern")
REFERENCE = "reference"  # the script on its original TensorFlow 1
AGAIN = "again"  # the second run of a side, for its noise
SHAKEN = "shaken"  # a run of the new side from values with errors in their last place
LOOKED = "looked"  # a run of the new side's first step, which shows what its forward pass computes
_LOOKED_AT = (CauseName.BROADCAST, CauseName.FORWARD_PASS, CauseName.GRADIENTS, CauseName.GRADIENT_SCALE, CauseName.SHAPES)
_MORE = {CauseName.LATER: SHAKEN, **dict.fromkeys(_LOOKED_AT, LOOKED)}
"""First causes of which a further run of the new side tells more."""
_MOST_STEPS = 1000  # of a second run with an anchor at each
Watch = Callable[[str, dict[str, Any]], None]

_PACKAGES = ("tensorflow", "tensorflow-cpu", "tf-keras", "tensorflow-estimator", "numpy")
_POLL_SECONDS = 0.1
_SIDES_DEFAULTS = {
    "PYTHONHASHSEED": "0",
    # GPUs else multiply float32 with a mantissa of 10 bits, and choose otherwise for each path: correct trainings part by 3e-5 in 15 steps.
    "NVIDIA_TF32_OVERRIDE": "0",
}
_LAUNCHER_SECONDS = 30.0  # for a launcher to end its tasks
_START_UP = re.compile(r"[IWE]\d{4} |WARNING: All log messages|To enable the following instructions")  # of TensorFlow's C++
_LINES_SHOWN = 15  # of a side's output, when it failed


@dataclasses.dataclass(frozen=True)
class Recordings:
    """The place of what both sides record: batches, values and logs.

    Attributes:
        parent: Folder in which they get a folder of their own; None for the system's temporary folder.
        kept: True if that folder stays, and is named on stderr.
        resumed: Folder that stays, and in which the sides that have ended do not run again; None for a new one in ``parent``.
    """

    parent: Path | None = None
    kept: bool = False
    resumed: Path | None = None

    @contextlib.contextmanager
    def folder(self) -> Iterator[str]:
        """Yields the folder; a new one goes in the end, unless it is kept.

        Raises:
            BridgeError: The folder cannot be written.
        """
        if self.resumed is not None:
            with resumed_folder(self.resumed) as folder:
                yield folder
            return
        try:
            folder = tempfile.mkdtemp(prefix="estimator-bridge-", dir=self.parent)
        except OSError as error:
            raise BridgeError(
                "The recordings cannot be written.",
                expected="an existing folder that can be written",
                received=f"{error.filename} ({error.strerror})",
                fix="Name another folder with --record-dir.",
            ) from error
        try:
            if self.kept:
                sys.stderr.write(f"estimator-bridge: what both sides record, with their logs, stays in {folder}\n")
            yield folder
        finally:
            if not self.kept:
                shutil.rmtree(folder)


def compare(
    script: Script,
    *,
    replaying: bool = True,
    replicas: int = 1,
    cluster: ClusterPlan | None = None,
    parallel: ParallelPlan = NOT_PARALLEL,
    thresholds: Thresholds | None = None,
    steps: int | None = None,
    recordings: Recordings | None = None,
    noise: bool = False,
    reference: str = "",
    watch: Watch = lambda side, event: None,
) -> ParityResult:
    """Runs a script on both paths and compares what they did.

    Args:
        script: Unmodified TensorFlow 1 script.
        replaying: True to give the modern side the legacy side's batches; False to run the script's input on each side.
        replicas: Number of replicas of the modern side, which share each batch.
        cluster: Cluster as which each side runs; its tasks must train in step.
        parallel: Mesh and micro-batches of the modern side.
        thresholds: Largest differences that count as equal.
        steps: Number of training steps after which each side ends the script; None to run it to its end.
        recordings: Folder in which both sides record; by default a temporary one.
        noise: True to run the modern side twice, and to tell what its two runs differ by.
        reference: Python interpreter with the script's original TensorFlow 1, which is recorded in place of the legacy side; empty
            for none.
        watch: Function of (side, event) that shows progress.

    Returns:
        The result.

    Raises:
        BridgeError: A side cannot run the script to its end.

    Example:
        >>> compare(Script("examples/digits/train.py")).verdict  # doctest: +SKIP
        'equal'
    """
    script.check_syntax()
    if reference:
        check_reference(reference)
    recorded = REFERENCE if reference else "legacy"
    with (recordings or Recordings()).folder() as folder:
        seconds: dict[str, float] = {}
        orders = {
            side: Order(
                side,
                folder,
                script,
                replaying,
                replicas,
                steps=steps,
                recorded=recorded,
                python=reference if side == REFERENCE else "",
                cluster=cluster,
                parallel=parallel,
            )
            for side in ((REFERENCE, *SIDES) if reference else SIDES)
        }
        with Ahead() as ahead:
            for side, following in itertools.zip_longest(orders, [*orders][1:]):
                ahead.following = orders.get(following)
                seconds[side] = run_side(orders[side], watch, ahead)
                trace = orders[side].traces(side)[0]
                if exported := list(trace.events("exported")):
                    ahead.meanwhile = functools.partial(_load_exports, exported)
                for event in trace.events("limited"):  # by --steps, or by Ctrl-C
                    steps = event["steps"]
                orders |= {
                    later: dataclasses.replace(order, steps=steps) for later, order in orders.items() if later not in seconds
                }
        if noise:
            orders[AGAIN] = _run_again(dataclasses.replace(orders["modern"], steps=steps), seconds, watch)
        from estimator_bridge.parity.clusters.judging import judge_tasks
        from estimator_bridge.parity.judge import judge

        traces = {side: order.trace(side) for side, order in orders.items()}
        judged = functools.partial(
            judge,
            command=(str(script), *script.args),
            replaying=replaying,
            replicas=replicas,
            thresholds=thresholds or Thresholds(),
            micro=parallel.micro,
            recorded=traces[recorded],
        )
        watch("modern", {"event": "judging"})
        if cluster:
            result = judge_tasks(cluster, judged, *(order.traces(side) for side, order in orders.items()))
        else:
            result = judged(traces["legacy"], traces["modern"])
        if noise:
            result = _with_noise("modern", result, judged(traces["modern"], traces[AGAIN]))
        if reference:
            result = with_reference(result, judged, traces)
        where = environment(orders["legacy"].traces("legacy")[0])
        result = _with_plan(result, parallel, *(orders[side].traces(side)[0] for side in SIDES))
        size = _size_of(Path(folder))
    return dataclasses.replace(result, seconds=seconds, environment=where, recorded=size)


def _with_plan(result: ParityResult, parallel: ParallelPlan, legacy: Trace, modern: Trace) -> ParityResult:
    """Adds what the modern side's plan is, and at which level both sides are equal."""
    notes = parallel.describe("The modern side")
    if not notes:
        return result
    from estimator_bridge.parity.values import first_update_difference

    result = dataclasses.replace(result, first_update=first_update_difference(legacy, modern, "train-0"))
    level = "declared approximate" if parallel.is_approximate else result.level
    levels = "bit-identical, 1e-6 on the first 5 losses and the first update, 1e-6 on these losses alone, declared approximate"
    return dataclasses.replace(result, notes=(*result.notes, *notes, f"Level of the plan: {level} (the levels: {levels})."))


def compare_rewrite(
    script: Script,
    plan: RewritePlan,
    *,
    thresholds: Thresholds | None = None,
    steps: int | None = None,
    recordings: Recordings | None = None,
    noise: bool = False,
    watch: Watch = lambda side, event: None,
) -> ParityResult:
    """Runs an old script on the legacy path and its rewrite in tf_keras, and compares what they did.

    The rewrite runs twice: with anchors, for the verdict, and freely, for information. If losses part between anchors for no reason that
    a rule finds, it runs once more, with values that differ in their last place: rounding may have grown. If that does not explain it,
    both scripts run once more with anchors at each step, as far as these fit into their limit. If the forward passes differ, the first step of
    the rewrite runs once more, and shows the first operation that computes something else. If all is equal, its first steps run once more with
    nothing replaced, which shows that it can train by itself.

    Args:
        script: Unmodified TensorFlow 1 script.
        plan: Rewrite and how to compare it.
        thresholds: Largest differences that count as equal.
        steps: Number of training steps after which both scripts end; None to run them to their end.
        recordings: Folder in which the sides record; by default a temporary one.
        noise: True to run the rewrite with anchors twice, and to tell what these two runs differ by.
        watch: Function of (side, event) that shows progress.

    Returns:
        The result.

    Raises:
        BridgeError: A script cannot run to its end, or its rewrite cannot be compared.
    """
    script.check_syntax()
    plan.script.check_syntax()
    check_keras(plan.script)
    ran = functools.partial(_rewrite, script, thresholds=thresholds or Thresholds(), noise=noise, watch=watch)
    with (recordings or Recordings()).folder() as folder, Ahead() as ahead:
        order = ahead.following = Order(ALONE, folder, script, True, 1, plan)
        ran = functools.partial(ran, last=ahead)
        try:
            result = ran(folder, plan, steps=steps)
        except BridgeError:
            if not any(Trace(Path(folder) / "new").events("perhaps in a graph")):
                raise
            sys.stderr.write(
                "estimator-bridge: the new script's steps are not seen in its graphs: it runs once more, eagerly.\n"
            )
            plan = dataclasses.replace(plan, runs_eagerly=True)
            result = ran(folder, plan, steps=steps)
        if result.cause and result.cause.name is CauseName.LATER and _fits_each_step(Trace(Path(folder) / "legacy"), plan):
            sys.stderr.write(
                "estimator-bridge: some losses part after the first steps, and no rule says why: both scripts run once more, "
                "with the old values given at each step.\n"
            )
            each = Path(folder) / "each step"
            each.mkdir(exist_ok=True)
            ended = Trace(Path(folder) / "legacy").events("limited")  # by Ctrl-C, which the second run does not wait for
            again = ran(str(each), dataclasses.replace(plan, anchor=1), steps=next((event["steps"] for event in ended), steps))
            note = (
                f"In a first run, losses parted between anchors, and no rule said why: {result.cause.seen} What is reported is a second run "
                "of both scripts, in which the old values were given at each step."
            )
            earlier = {f"{side} before": seconds for side, seconds in result.seconds.items()}
            result = dataclasses.replace(again, notes=(note, *again.notes), seconds={**again.seconds, **earlier})
        if result.verdict == "equal":
            alone = run_side(order, watch, ahead)
            result = dataclasses.replace(result, seconds={**result.seconds, ALONE: alone})
        where, size = environment(Trace(Path(folder) / "legacy")), _size_of(Path(folder))
    return dataclasses.replace(result, environment=where, recorded=size)


def _size_of(folder: Path) -> int:
    """Returns the bytes of the files below a folder."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def _rewrite(
    script: Script,
    folder: str,
    plan: RewritePlan,
    *,
    thresholds: Thresholds,
    steps: int | None,
    noise: bool,
    watch: Watch,
    last: Ahead,
) -> ParityResult:
    """Runs both scripts in a folder, and compares them; the process of ``last`` starts beside their last side."""
    free = dataclasses.replace(plan, is_free=True)
    plans = {"legacy": plan, "new": plan, "free": free}
    orders = {side: Order(side, folder, script, True, 1, chosen, steps=steps) for side, chosen in plans.items()}
    old, seconds = Trace(Path(folder) / "legacy"), {}
    with Ahead() as ahead:
        for side, following in itertools.zip_longest(orders, [*orders][1:]):
            ahead.following = orders.get(following)
            seconds[side] = run_side(orders[side], watch, ahead)
            exported = list(orders[side].trace(side).events("exported"))
            ahead.meanwhile = functools.partial(_prepare_verdict, exported, last if following == [*orders][-1] else None)
            if side == "legacy":
                check_has_trained(old)
    if noise:
        again = _run_again(orders["new"], seconds, watch)
    from estimator_bridge.parity.rewrite.judging import judge_rewrite, own_differences

    command = (str(script), str(plan.script), *script.args)
    judged = functools.partial(judge_rewrite, plan=plan, command=command, thresholds=thresholds)
    new, freely = (orders[side].trace(side) for side in ("new", "free"))
    watch("new", {"event": "judging"})
    result = judged(old, new, freely)
    if result.cause and (side := _MORE.get(result.cause.name)):
        once_more = dataclasses.replace(plan, is_shaken=side == SHAKEN, looks=side == LOOKED)
        order = dataclasses.replace(orders["new"], side=side, plan=once_more)
        try:
            seconds[side] = run_side(order, watch)
            judged = functools.partial(judged, **{side: order.trace(side)})
            result = judged(old, new, freely)
        except BridgeError as error:  # the verdict stands without it
            result = dataclasses.replace(
                result, notes=(*result.notes, f"A further run that would have told more failed: {error.what}")
            )
    if noise:
        repeated = again.trace(AGAIN)
        itself = own_differences(old, new, repeated, result.predictions)
        result = _with_noise("new", result, between_runs(result, judged(old, repeated, freely), *itself))
    return dataclasses.replace(result, seconds=seconds)


def check_has_trained(old: Trace) -> None:
    """Refuses a recording of trainings without a step, from which no rewrite can start.

    Args:
        old: Trace of the old script.

    Raises:
        BridgeError: The trainings ended before their first step.
    """
    asked = [f"{event['call']} up to step {event['max_steps']}" for event in old.events("train") if event["max_steps"]]
    if any(old.events("train")) and not any(old.events("step")):
        raise BridgeError(
            "The old script trained no step, so its rewrite cannot be compared.",
            expected="a training of at least one step",
            received=f"{', '.join(asked) or 'a training'} that ended at once",
            fix="Give both scripts a new model_dir: a checkpoint of an earlier run may have reached max_steps. Else see if the input is empty.",
        )


def _fits_each_step(old: Trace, plan: RewritePlan) -> bool:
    """Returns True if anchors at each step are not there yet, fit into the limit, and do not take long."""
    size, steps = next((event["size"] for event in old.events("anchor")), math.inf), sum(1 for _ in old.events("step"))
    return plan.anchor > 1 and steps <= _MOST_STEPS and size * steps <= plan.anchor_limit


def _run_again(order: Order, seconds: dict[str, float], watch: Watch) -> Order:
    """Runs a side once more, after it has said what this costs."""
    sys.stderr.write(
        f"estimator-bridge: --noise runs the {order.side} side once more; its first run took {seconds[order.side]:.0f} s.\n"
    )
    again = dataclasses.replace(order, side=AGAIN)
    seconds[AGAIN] = run_side(again, watch)
    return again


def _with_noise(side: str, result: ParityResult, itself: ParityResult) -> ParityResult:
    noise = noise_floor(side, result, itself)
    return dataclasses.replace(result, noise=noise, notes=(*result.notes, describe(noise)))


def side_command(order: Order) -> list[str]:
    """Returns the command line of the process that runs one side."""
    if order.python:
        recorder = Path(__file__).parent / "reference" / "recorder.py"
        script = {"target": order.script.target, "args": order.script.args, "is_module": order.script.is_module}
        place = {"folder": str(Path(order.folder) / order.side), "steps": order.steps}
        cells = write_cells(order.script.target, Path(order.folder)) if is_notebook(Path(order.script.target)) else ""
        return [order.python, str(recorder), json.dumps({**script, **place, "cells": cells})]
    return [sys.executable, "-m", "estimator_bridge.parity.side", json.dumps(dataclasses.asdict(order))]


class Ahead:
    """The process of the side that runs next: it imports TensorFlow while the one before it trains, and then waits.

    Attributes:
        following: Order of that side; None if no side follows, or once it has been started.
        meanwhile: Function that this process calls when a side has begun.
    """

    def __init__(self) -> None:
        self.following: Order | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _end(self._process, gently=False)

    @property
    def has_started(self) -> bool:
        """True while a process waits."""
        return self._process is not None

    def start(self) -> None:
        """Starts the process, unless the side has ended before, or is one of several tasks or of another Python."""
        order, self.following = self.following, None
        if order and not order.cluster and not order.python and seconds_of_ended(order, environment()) is None:
            self._process = _started(order)

    def take(self, order: Order) -> subprocess.Popen[bytes]:
        """Returns the process of a side, which runs its script now."""
        process, self._process = self._process or _started(order), None
        if not order.cluster and not order.python:
            assert process.stdin
            with contextlib.suppress(OSError):  # it has ended
                process.stdin.write(GO)
                process.stdin.flush()
        return process


def _prepare_verdict(exported: Sequence[Mapping[str, Any]], last: Ahead | None) -> None:
    """Loads recorded exports, and starts the process that follows the last side: now another process works."""
    if last:
        last.start()
    if exported:
        _load_exports(exported)


def _load_exports(exported: Sequence[Mapping[str, Any]]) -> None:
    """Loads recorded exports, with TensorFlow: the judge needs them soon, and now another process works."""
    with quiet_start_up():
        import tensorflow as tf

        from estimator_bridge.parity.exports.recorded import loaded
    if tf.config.list_physical_devices("GPU"):
        return  # whoever uses a GPU takes its memory, which the other process needs
    for event in exported:
        with contextlib.suppress(BridgeError):  # the judge says it
            loaded(Path(event["folder"]))


def _started(order: Order) -> subprocess.Popen[bytes]:
    with (Path(order.folder) / f"{order.side}.log").open("wb") as output:
        return subprocess.Popen(
            side_command(order),
            stdin=subprocess.PIPE,  # stays open: the side ends with this process
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_SIDES_DEFAULTS | os.environ | {"PYTHONUNBUFFERED": "1"},
        )


def run_side(order: Order, watch: Watch, ahead: Ahead | None = None) -> float:
    """Runs a side in a process of its own, unless it has ended before; returns its seconds.

    Args:
        order: Order for the side.
        watch: Function of (side, event) that shows progress.
        ahead: Process that was started ahead for this side, and the order of the next one.

    Raises:
        BridgeError: The side cannot run its script to its end.
    """
    ahead = ahead or Ahead()
    if not ahead.has_started and (ended := seconds_of_ended(order, environment())) is not None:
        order.traces(order.side)[0].follow(0, functools.partial(watch, order.side))
        return ended
    started = time.monotonic()
    log = Path(order.folder) / f"{order.side}.log"
    trace = order.traces(order.side)[0]
    is_recording = order.side == order.recorded and order.seed is None and not order.cluster
    process = ahead.take(order)
    try:
        seen = 0
        if is_recording:
            _end_at_interrupt(process)
        ahead.meanwhile()
        while process.poll() is None:  # the length of a training is not known, so there is no deadline
            time.sleep(_POLL_SECONDS)
            seen = trace.follow(seen, functools.partial(watch, order.side))
            watch(order.side, {"event": "alive"})
            if seen:
                ahead.start()
        trace.follow(seen, functools.partial(watch, order.side))
    finally:
        if is_recording:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _end(process, gently=order.cluster is not None)
        if order.script.verbose:
            sys.stderr.write(log.read_text(errors="replace"))
    if process.returncode:
        raise _failure(order, order.trace(order.side), log, process.returncode)
    remember(order, environment(), seconds := time.monotonic() - started)
    return seconds


def _end(process: subprocess.Popen[bytes], *, gently: bool) -> None:
    """Ends a process, if it still runs; a launcher, which has tasks to end and a folder to remove, is asked first."""
    if gently:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LAUNCHER_SECONDS)
    process.kill()
    process.wait()


def _end_at_interrupt(process: subprocess.Popen[bytes]) -> None:
    """Lets the first Ctrl-C end the recording after the present step, and the second one the comparison."""

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stderr.write(
            "estimator-bridge: the recording ends with this step, and the rest of the comparison follows. Ctrl-C again ends it.\n"
        )
        process.send_signal(signal.SIGINT)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)


def _failure(order: Order, trace: Trace, log: Path, code: int) -> BridgeError:
    refusals = list(trace.events("failed"))
    if refusals:
        return BridgeError(f"The {order.side} side: {refusals[-1]['message']}", address=refusals[-1]["address"])
    lines = [line for event in trace.events("error") for line in event["lines"]] or [
        line for line in log.read_text(errors="replace").splitlines() if line and not _START_UP.match(line)
    ]
    script = order.plan.script if order.plan and order.side != "legacy" else order.script
    start = ["estimator-bridge", "run", "--path", "legacy" if order.side == "legacy" else "modern"]
    if order.python or script is not order.script:
        start = [order.python or "python"]
    words = str(script).split(" ")
    if order.python and is_notebook(Path(script.target)):
        start = ["jupyter", "nbconvert", "--to", "script", *words, "&&", *start]
        words = [str(Path(script.target).with_suffix(".py"))]
    command = shlex.join([*start, *words, *script.args]).replace("'&&'", "&&")
    what = f"{script} fails without a comparison" if order.side == ALONE else f"The {order.side} side could not run {script}"
    return BridgeError(
        f"{what}: it ended with exit code {code}.",
        expected="a script that runs to its end",
        received="\n    ".join(["it ended with", *lines[-_LINES_SHOWN:]]) if lines else "no output",
        fix=f"Correct the error that this command shows: {command}; or read {order.side}.log in the folder that --keep names.",
    )


def environment(trace: Trace | None = None) -> dict[str, str]:
    """Returns what a report names of a comparison: versions, the seed and, if a side has run, its devices.

    Args:
        trace: Trace of a side that has ended.
    """
    from estimator_bridge.parity.recording.randomness import SEED

    versions = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    versions["estimator-bridge"] = __version__
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # tensorflow has distributions of several names
            versions[name] = importlib.metadata.version(name)
    if not any(name.startswith("tensorflow") and name != "tensorflow-estimator" for name in versions):  # a vendor's build
        for name in importlib.metadata.packages_distributions().get("tensorflow", ()):
            versions[name] = importlib.metadata.version(name)
    versions["seed"] = f"{SEED}, where the script sets none"
    for event in trace.events("imported") if trace else ():
        versions["devices"] = ", ".join(event.get("devices", ()))
    return versions
