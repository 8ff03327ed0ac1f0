"""Time of a training step in micro-batches, against one whole batch: the examples take turns.

    python benchmarks/micro_batches.py [--runs 5] [--micro 4] [--examples digits/train.py]

Runs each example by ``estimator-bridge run --path modern``, and reads the steps per second that Estimator logs, without the first line.
Prints a Markdown table: the median of the steps per second of each, and the time of a step in micro-batches, divided by that of a whole
one within each turn. "by hand" is what a user does instead: as many steps with the rows of one micro-batch each. Exit code 1 if a step in micro-batches takes more than 1.3 times as long as a whole one.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from turns import judge, logged_steps_per_second, ratio

EXAMPLES = Path(__file__).parents[1] / "examples"
FLAGS = {
    "digits/train.py": ("--batch_size=1024", "--train_steps=200"),
    "parallel/train.py": ("--batch_size=256", "--train_steps=60"),
    "parallel/train.py, 1024 rows": ("--batch_size=1024", "--train_steps=40"),
    "parallel/two_tower.py": ("--batch_size=4096", "--train_steps=600"),
    "wide_deep/train.py": ("--batch_size=4096", "--train_steps=600", "--num_examples=20000", "--save_checkpoints_steps=600"),
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
    micro = arguments.micro
    print(
        f"| example | whole batch | {micro} micro-batches | time | at most | | {micro} steps by hand |\n|---|---|---|---|---|---|---|"
    )
    bounds: dict[str, bool] = {}
    for example in arguments.examples:
        script, (rows, *others) = EXAMPLES / example.partition(",")[0], FLAGS[example]
        part = f"--batch_size={int(rows.partition('=')[2]) // micro}"
        ways = ((rows, 1), (rows, micro), (part, 1))
        turns = [
            [logged_steps_per_second(script, (size, *others), ["--micro", str(number)]) for size, number in ways]
            for _ in range(arguments.runs)
        ]
        whole, parts, small = (list(rates) for rates in zip(*turns, strict=True))
        measured, by_hand = ratio(whole, parts), ratio(whole, [rate / micro for rate in small])
        medians = " | ".join(f"{statistics.median(rates):.1f}" for rates in (whole, parts))
        line = f"| {example} | {medians} | {measured} | {LIMIT:g} |"
        bounds[line] = measured.median <= LIMIT
        print(f"{line} {'met' if bounds[line] else 'missed'} | {by_hand} |", flush=True)
    judge(bounds)


if __name__ == "__main__":
    main()
