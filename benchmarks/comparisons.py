"""Wall time and memory of ``compare`` against those of its two sides, which take turns with it in one run.

    python benchmarks/comparisons.py [--runs 7] [--steps 1000 10000]

For each number of training steps and each example, a turn runs the script on the legacy path, on the modern path, and with ``compare``.
Reported are the median of compare / (legacy + modern) with the interval that holds the true median with 95 % probability, and the
largest resident memory of ``compare`` and of its larger side alone. Memory that stays the same from one number of steps to the next is
bounded. The exit code is 1 if a comparison takes more than 1.1 times as long as both sides.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from turns import judge, ratio

EXAMPLES = {name: Path(__file__).parents[1] / "examples" / name / "train.py" for name in ("digits", "wide_deep")}
LIMIT = 1.1
"""Largest time of a comparison, in times of both sides."""
VERBS = {"legacy": ["run"], "modern": ["run", "--path", "modern"], "compare": ["compare", "--out", "report"]}


def measure(verb: str, script: Path, steps: int) -> tuple[float, float]:
    """Runs a command; returns its seconds and its MB of memory, those of the largest of its processes."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", "estimator_bridge", *VERBS[verb], str(script), f"--train_steps={steps}"]
        started = time.perf_counter()
        process = subprocess.Popen([*command, f"--save_checkpoints_steps={steps}"], cwd=folder, stdout=log, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            log.seek(0)
            sys.exit(f"{' '.join(command)}: {log.read()[-3000:].decode(errors='replace')}")
    return seconds, used.ru_maxrss / 1e3


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--steps", type=int, nargs="+", default=[1000, 10000])
    arguments = parser.parse_args()
    print("| example | steps | legacy s | modern s | compare s | compare / (legacy + modern) | MB compare | MB larger side |")
    print("|---" * 8 + "|")
    bounds: dict[str, bool] = {}
    for name, script in EXAMPLES.items():
        for steps in arguments.steps:
            found: dict[str, list[tuple[float, float]]] = {verb: [] for verb in VERBS}
            for run in range(arguments.runs):
                for verb in VERBS if run % 2 == 0 else reversed(VERBS):
                    found[verb].append(measure(verb, script, steps))
                    print(f"run {run + 1} {name} {verb}: {found[verb][-1][0]:.1f} s", file=sys.stderr)
            seconds = {verb: [one[0] for one in measured] for verb, measured in found.items()}
            memory = {verb: max(one[1] for one in measured) for verb, measured in found.items()}
            alone = [sum(pair) for pair in zip(seconds["legacy"], seconds["modern"], strict=True)]
            times = [f"{statistics.median(seconds[verb]):.1f}" for verb in VERBS]
            sizes = [f"{memory['compare']:.0f}", f"{max(memory['legacy'], memory['modern']):.0f}"]
            measured_ratio = ratio(seconds["compare"], alone)
            line = f"| {' | '.join([name, str(steps), *times, str(measured_ratio), *sizes])} |"
            bounds[line] = measured_ratio.median <= LIMIT
            print(line, flush=True)
    judge(bounds)


if __name__ == "__main__":
    main()
