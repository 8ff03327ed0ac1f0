"""Time of a training step in micro-batches, against one whole batch: the examples take turns.

    python benchmarks/micro_batches.py [--runs 5] [--micro 4] [--examples digits parallel]

Runs each example by ``estimator-bridge run --path modern``, and reads the steps per second that Estimator logs, without the first line.
Prints a Markdown table: the median of the steps per second of each, and the time of a step in micro-batches, divided by that of a whole
one within each turn.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from turns import ratio

EXAMPLES = Path(__file__).parents[1] / "examples"
FLAGS = {
    "digits": ("--batch_size=1024", "--train_steps=200"),
    "parallel": ("--batch_size=256", "--train_steps=60"),
    "wide_deep": ("--batch_size=4096", "--train_steps=600", "--num_examples=20000", "--save_checkpoints_steps=600"),
}
LIMIT = 1.3
"""Largest time of a step in micro-batches, in steps of a whole batch."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--micro", type=int, default=4)
    parser.add_argument("--examples", nargs="+", choices=FLAGS, default=list(FLAGS))
    arguments = parser.parse_args()
    print(f"| example | whole batch | {arguments.micro} micro-batches | time | at most | |\n|---|---|---|---|---|---|")
    for example in arguments.examples:
        turns = [[steps_per_second(example, micro) for micro in (1, arguments.micro)] for _ in range(arguments.runs)]
        whole, parts = (list(rates) for rates in zip(*turns, strict=True))
        measured = ratio(whole, parts)
        medians = " | ".join(f"{statistics.median(rates):.1f}" for rates in (whole, parts))
        print(
            f"| {example} | {medians} | {measured} | {LIMIT:g} | {'met' if measured.median <= LIMIT else 'missed'} |",
            flush=True,
        )


def steps_per_second(example: str, micro: int) -> float:
    """Trains an example in a process of its own."""
    runner = [sys.executable, "-m", "estimator_bridge", "run", "--path", "modern", "--micro", str(micro)]
    command = [*runner, str(EXAMPLES / example / "train.py"), *FLAGS[example]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
    rates = [float(rate) for rate in re.findall(r"^INFO.*global_step/sec: ([\d.]+)", done.stderr, re.MULTILINE)]
    if done.returncode or len(rates) < 2:
        sys.exit(f"{example}: {done.stderr[-3000:]}")
    return statistics.median(rates[1:])


if __name__ == "__main__":
    main()
