"""Steps per second of both paths on the digits example, in one run: ``python benchmarks/paths.py [--runs 7] [--steps 2000]``.

Each run trains twice, a few steps and many, in separate processes. The difference of the two times is the time of the steps, without
imports, graph building, tracing and the final evaluation. Paths take turns, so that a busy machine slows both. Reported are the median
of each path with its range, and the ratio of the medians.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "examples" / "digits" / "train.py"
PATHS = ("legacy", "modern")
FEW = 100


def seconds(path: str, steps: int) -> float:
    """Returns the wall time of a whole run."""
    with tempfile.TemporaryDirectory() as model_dir:
        flags = [f"--model_dir={model_dir}", f"--train_steps={steps}", "--save_checkpoints_steps=1000000"]
        command = [sys.executable, "-m", "estimator_bridge", "run", "--path", path, str(SCRIPT), *flags]
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - started


def steps_per_second(path: str, steps: int) -> float:
    """Returns the steps per second of ``steps`` steps, without what runs before and after them."""
    return steps / (seconds(path, FEW + steps) - seconds(path, FEW))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()
    rates: dict[str, list[float]] = {path: [] for path in PATHS}
    for run in range(arguments.runs):
        for path in PATHS:
            rates[path].append(steps_per_second(path, arguments.steps))
            print(f"run {run + 1} {path}: {rates[path][-1]:.0f} steps/s", file=sys.stderr)
    medians = {path: statistics.median(rates[path]) for path in PATHS}
    for path in PATHS:
        print(f"{path}: {medians[path]:.0f} steps/s ({min(rates[path]):.0f} to {max(rates[path]):.0f})")
    print(f"modern / legacy: {medians['modern'] / medians['legacy']:.2f}")


if __name__ == "__main__":
    main()
