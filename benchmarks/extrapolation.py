"""Compares step times that ``estimator-bridge plan`` extrapolates from one device with those of pipelines and of several workers.

    python benchmarks/extrapolation.py [--runs 3] [--ballast 4000000]

Trains jobs/idle_layers.py, whose layers wait in place of computing, so that a machine with two cores stands for four devices. One device
is measured first. ``plan`` extrapolates from it, and what it says is compared with trainings on 2 and 4 devices: stages of a pipeline,
layers placed on devices, and workers that add up the gradients of a variable with ``--ballast`` elements. The bandwidth between workers is that at which the first
extrapolation of two workers is exact, so only the one of four is judged. Prints a Markdown table with medians. Exit code 1 if one of them is
further than 25 % from what was measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from turns import judge, logged_steps_per_second

JOB = Path(__file__).parent / "jobs" / "idle_layers.py"
ROWS = 16
FLOAT_BYTES = 4
LIMIT = 0.25
"""Largest distance of an extrapolated time from the measured one, as a part of that."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ballast", type=int, default=4_000_000)
    arguments = parser.parse_args()
    print("| devices | one device, s | extrapolated, s | measured, s | apart |\n|---|---|---|---|---|")

    def step(flags: list[str], options: list[str] | None = None, workers: int = 1) -> float:
        runs = []
        for _ in range(arguments.runs):
            with tempfile.TemporaryDirectory() as folder:
                own = [*flags, f"--model_dir={folder}/model"]
                runs.append(1 / logged_steps_per_second(JOB, own, options or [], workers))
        return statistics.median(runs)

    bounds: dict[str, bool] = {}
    for devices in (2, 4):
        flags = [f"--stages={devices}"]
        one = step(flags)
        for name, mesh in (
            (f"{devices} stages, 8 micro-batches", ["--mesh", f"pipeline={devices}", "--micro", "8"]),
            (f"model={devices}", ["--mesh", f"model={devices}"]),
        ):
            bounds |= shown(name, one, extrapolated(one, 1e12, 1, mesh, flags), step(flags, mesh))
    flags = [f"--ballast={arguments.ballast}"]
    one, two, four = step(flags), step(flags, workers=2), step(flags, workers=4)
    bandwidth = arguments.ballast * FLOAT_BYTES / max(two - one, 1e-4)
    bounds |= shown("2 workers (the bandwidth is from here)", one, extrapolated(one, bandwidth, 2, [], flags), two)
    bounds |= shown("4 workers", one, extrapolated(one, bandwidth, 4, [], flags), four)
    judge(bounds)


def shown(name: str, one: float, expected: float, measured: float) -> dict[str, bool]:
    """Prints a row, and returns whether it is within the limit."""
    apart = expected / measured - 1
    line = f"| {name} | {one:.3f} | {expected:.3f} | {measured:.3f} | {apart:+.0%} |"
    print(line, flush=True)
    return {line: abs(apart) <= LIMIT}


def extrapolated(one: float, bandwidth: float, workers: int, options: list[str], flags: list[str]) -> float:
    """Returns the seconds of a step that ``plan`` prints."""
    known = ["--step-seconds", str(one), "--rows", str(ROWS), "--bandwidth", str(bandwidth / 1e9), "--workers", str(workers)]
    command = [sys.executable, "-m", "estimator_bridge", "plan", "--format", "json", *known, *options, str(JOB), *flags]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(printed)["extrapolated"][0]["seconds"])


if __name__ == "__main__":
    main()
