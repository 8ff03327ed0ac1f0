"""Wall time and memory of ``compare`` against those of its two sides, which take turns with it in one run.

    python benchmarks/comparisons.py [--runs 7] [--steps 1000 10000] [--rewrites]

For each number of training steps and each example, a turn runs the script on the legacy path, on the modern path, and with ``compare``.
Reported are the median of compare / (legacy + modern) with the interval that holds the true median with 95 % probability, and the
largest resident memory of ``compare`` and of its larger side alone. Memory that stays the same from one number of steps to the next is
bounded. The exit code is 1 if a comparison takes more than 1.1 times as long as both sides.

With ``--rewrites`` the new side is the Keras script that ``convert source`` makes of the example, run alone by Python. ``compare`` runs it
with anchors and without, so it counts twice.
"""

from __future__ import annotations

import argparse
import itertools
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
PROGRAM = ["-m", "estimator_bridge"]


def commands(script: Path, rewrite: Path | None) -> dict[str, list[str]]:
    """Returns the commands of the sides and of their comparison, in this order."""
    compare = [*PROGRAM, "compare", "--out", "report", str(script)]
    legacy = [*PROGRAM, "run", str(script)]
    if rewrite is None:
        return {"legacy": legacy, "modern": [*PROGRAM, "run", "--path", "modern", str(script)], "compare": compare}
    return {"legacy": legacy, "rewrite": [str(rewrite)], "compare": [*compare, str(rewrite)]}


def measure(command: list[str], steps: int) -> tuple[float, float]:
    """Runs a command of Python; returns its seconds and its MB of memory, those of the largest of its processes."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        command = [sys.executable, *command, f"--train_steps={steps}", f"--save_checkpoints_steps={steps}"]
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            log.seek(0)
            sys.exit(f"{' '.join(command)}: {log.read()[-3000:].decode(errors='replace')}")
    return seconds, used.ru_maxrss / 1e3


def converted(script: Path, rewrite: Path) -> Path:
    """Writes the Keras script that ``convert source`` makes of a script."""
    subprocess.run(
        [sys.executable, *PROGRAM, "convert", "source", str(script), "--out", str(rewrite)],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return rewrite


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--steps", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--rewrites", action="store_true", help="compare the example with the Keras script that is made of it")
    arguments = parser.parse_args()
    new, times = ("rewrite", 2) if arguments.rewrites else ("modern", 1)
    sides = f"(legacy + {times} x {new})" if times > 1 else f"(legacy + {new})"
    print(f"| example | steps | legacy s | {new} s | compare s | compare / {sides} | MB compare | MB larger side |")
    print("|---" * 8 + "|")
    bounds: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder:
        for (name, script), steps in itertools.product(EXAMPLES.items(), arguments.steps):
            verbs = commands(script, converted(script, Path(folder) / f"{name}_{steps}.py") if arguments.rewrites else None)
            found: dict[str, list[tuple[float, float]]] = {verb: [] for verb in verbs}
            for run in range(arguments.runs):
                for verb in verbs if run % 2 == 0 else reversed(verbs):
                    found[verb].append(measure(verbs[verb], steps))
                    print(f"run {run + 1} {name} {verb}: {found[verb][-1][0]:.1f} s", file=sys.stderr)
            seconds = {verb: [one[0] for one in measured] for verb, measured in found.items()}
            memory = {verb: max(one[1] for one in measured) for verb, measured in found.items()}
            alone = [old + times * own for old, own in zip(seconds["legacy"], seconds[new], strict=True)]
            figures = [f"{statistics.median(seconds[verb]):.1f}" for verb in verbs]
            sizes = [f"{memory['compare']:.0f}", f"{max(memory['legacy'], memory[new]):.0f}"]
            measured_ratio = ratio(seconds["compare"], alone)
            line = f"| {' | '.join([name, str(steps), *figures, str(measured_ratio), *sizes])} |"
            bounds[line] = measured_ratio.median <= LIMIT
            print(line, flush=True)
    judge(bounds)


if __name__ == "__main__":
    main()
