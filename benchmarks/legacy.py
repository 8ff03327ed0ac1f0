"""Steps per second of one TensorFlow 1 training under TensorFlow 1.15, native 2.15 and the legacy path, in turn, in one run.

    python benchmarks/legacy.py --tf1 ENV/bin/python --native ENV/bin/python [--runs 7]

``--tf1`` and ``--native`` are the Pythons of environments with TensorFlow 1.15.5 and 2.15.1; this file's own Python runs the legacy
path. Each run is a process of its own that trains jobs/legacy_training.py; the first 300 steps do not count. The three take turns,
so that a busy machine slows all of them. A ratio is taken within each turn; reported are the median of the turns and the interval
that holds the true median with 95 % probability (of order statistics, which assumes nothing about the distribution).
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SCRIPT = Path(__file__).parent / "jobs" / "legacy_training.py"
STEPS = {"dense": 4000, "convolutional": 2000, "embedding": 4000}


def steps_per_second(command: Sequence[str], model: str) -> float:
    """One training, in a process of its own."""
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    arguments = [*command, str(SCRIPT), model, str(STEPS[model])]
    out = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment).stdout
    return float(re.findall(r"steps per second: (.+)", out)[-1])


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Of the median, with at least 95 % probability where there are six values or more, else the whole range."""
    ordered = sorted(values)
    n = len(ordered)
    outside = 0
    while 2 * sum(math.comb(n, k) for k in range(outside + 1)) / 2**n <= 0.05:
        outside += 1
    outside = max(outside - 1, 0)
    return ordered[outside], ordered[n - 1 - outside]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf1", required=True, help="python of an environment with TensorFlow 1.15.5")
    parser.add_argument("--native", required=True, help="python of an environment with TensorFlow 2.15.1")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--models", nargs="+", choices=STEPS, default=list(STEPS))
    arguments = parser.parse_args()
    ours = [sys.executable, "-m", "estimator_bridge", "run"]
    commands = {"1.15.5": [arguments.tf1], "2.15.1": [arguments.native], "legacy path": ours}
    rates: dict[tuple[str, str], list[float]] = {(model, name): [] for model in arguments.models for name in commands}
    for run in range(arguments.runs):
        for model in arguments.models:
            for name, command in commands.items():
                rates[model, name].append(steps_per_second(command, model))
                print(f"run {run + 1} {model} {name}: {rates[model, name][-1]:.0f} steps/s", file=sys.stderr)
    print("model          1.15.5   2.15.1   legacy path   legacy / 1.15.5       legacy / 2.15.1")
    for model in arguments.models:
        medians = "  ".join(f"{statistics.median(rates[model, name]):7.0f}" for name in commands)
        ratios = []
        for name in ("1.15.5", "2.15.1"):
            turns = [ours / theirs for ours, theirs in zip(rates[model, "legacy path"], rates[model, name], strict=True)]
            low, high = interval(turns)
            ratios.append(f"{statistics.median(turns):.2f} ({low:.2f} to {high:.2f})")
        print(f"{model:<13}{medians}       {ratios[0]:<20}  {ratios[1]}")


if __name__ == "__main__":
    main()
