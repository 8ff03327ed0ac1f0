"""Contestants that take turns, so that a busy machine slows all of them, and statistics of their figures."""

from __future__ import annotations

import contextlib
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Rates = dict[tuple[str, str], list[float]]


class Contestant(NamedTuple):
    """A command that answers requests, and the first word of its requests; contestants with the same command share a process."""

    command: tuple[str, ...]
    way: str = ""


class Worker:
    """A process that reads the name of a training on stdin, trains it, and prints its speed on stdout.

    Args:
        command: Command to start.
        gpu: True if the process sees GPUs.
    """

    def __init__(self, command: Sequence[str], gpu: bool) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed with the worker
        environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | ({} if gpu else {"CUDA_VISIBLE_DEVICES": ""})
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.communicate()
        self._log.close()

    def ask(self, request: str) -> float:
        """Sends a request and returns its steps per second."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if found := re.match(r"steps per second: (.+)", line):
                return float(found[1])
        self._log.seek(0)
        sys.exit(f"{request}: {self._log.read()[-3000:]}")


def take_turns(contestants: Mapping[str, Contestant], models: Sequence[str], runs: int, gpu: bool) -> Rates:
    """Returns the steps per second of each (model, contestant), one figure a run.

    In each run every command has a separate process, which trains the models one after the other. For each model all contestants take
    their turns before the next model begins. The order is reversed from run to run.
    """
    rates: Rates = {(model, name): [] for model in models for name in contestants}
    for run in range(runs):
        with contextlib.ExitStack() as stack:
            commands = {contestant.command for contestant in contestants.values()}
            workers = {command: stack.enter_context(Worker(command, gpu)) for command in commands}
            for model in models:
                for name in contestants if run % 2 == 0 else reversed(contestants):
                    command, way = contestants[name]
                    rates[model, name].append(workers[command].ask(f"{way} {model}".strip()))
                    print(f"run {run + 1} {model} {name}: {rates[model, name][-1]:.0f} steps/s", file=sys.stderr)
    return rates


def logged_steps_per_second(
    script: str | os.PathLike[str], flags: Sequence[str], options: Sequence[str], workers: int = 1, gpu: bool = False
) -> float:
    """Runs a script on the modern path; returns the median of the steps per second that Estimator logs, without the first line.

    With several workers, their chief logs.
    """
    hidden = {} if gpu else {"CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory() as logs:
        tasks = ["launch", "--worker", str(workers - 1), "--log-dir", logs] if workers > 1 else ["run"]
        command = [sys.executable, "-m", "estimator_bridge", *tasks, "--path", "modern", *options, os.fspath(script), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | hidden)
        log = Path(logs, "chief-0.log").read_text() if workers > 1 and not done.returncode else done.stderr
    rates = [float(rate) for rate in re.findall(r"^INFO.*global_step/sec: ([\d.]+)", log, re.MULTILINE)]
    if done.returncode or len(rates) < 2:
        sys.exit(f"{script}: {log[-3000:]}")
    return statistics.median(rates[1:])


class Ratio(NamedTuple):
    """The median of the ratios within each turn, and the interval that holds the true median with 95 % probability."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Returns the ratio of the figures of two contestants, turn by turn."""
    turns = [one / other for one, other in zip(ours, theirs, strict=True)]
    return Ratio(statistics.median(turns), *interval(turns))


def judge(bounds: Mapping[str, bool]) -> None:
    """Ends a benchmark: with exit code 1 and the lines of the bounds that are not met, if there are any.

    Args:
        bounds: Line that names a bound and the measured figure -> True if it is met.
    """
    missed = [f"missed: {line}" for line, is_met in bounds.items() if not is_met]
    if missed:
        sys.exit("\n".join(missed))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns an interval of the median, with at least 95 % probability if there are six values or more, else the whole range.

    It is one of order statistics, which assumes nothing about the distribution.
    """
    ordered = sorted(values)
    n = len(ordered)
    outside = 0
    while 2 * sum(math.comb(n, k) for k in range(outside + 1)) / 2**n <= 0.05:
        outside += 1
    outside = max(outside - 1, 0)
    return ordered[outside], ordered[n - 1 - outside]
