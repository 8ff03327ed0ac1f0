"""Time of a training step in a pipeline, against one device: layers that wait in place of computing, and two examples.

    python benchmarks/pipeline.py [--runs 3] [--only idle]

Layers that wait need no cores, so their times show what the schedule allows, on any machine: with p stages and m micro-batches at most
p * m / (m + p - 1) times as fast. The examples compute on virtual devices that share the cores of this machine, so they show what a pipeline
costs where nothing is won. Prints a Markdown table: for each contestant the median of the steps per second that Estimator logs, without the
first, and how many times as fast the pipeline is as the same micro-batches on one device, within each turn. Exit code 1 if a pipeline of
layers that wait is slower than it has to be.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from turns import judge, logged_steps_per_second, ratio

ROOT = Path(__file__).parents[1]
IDLE = ROOT / "benchmarks" / "jobs" / "idle_layers.py"
CASES = {
    "idle, p=2, m=4": (2, 4, IDLE, ("--stages=2",), 1.5),
    "idle, p=2, m=8": (2, 8, IDLE, ("--stages=2",), 1.7),
    "idle, p=4, m=8": (4, 8, IDLE, ("--stages=4",), 2.5),
    "parallel, p=2, m=4": (2, 4, ROOT / "examples/parallel/train.py", ("--batch_size=256", "--train_steps=60"), None),
    "digits, p=2, m=4": (2, 4, ROOT / "examples/digits/train.py", ("--batch_size=1024", "--train_steps=200"), None),
}
"""Stages, micro-batches, script, its flags, and how many times as fast it has to be."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a case's name")
    arguments = parser.parse_args()
    print("| case | one device | pipeline | times as fast | most possible | at least | |\n|---|---|---|---|---|---|---|")
    bounds: dict[str, bool] = {}
    for name, (stages, micro, script, flags, least) in CASES.items():
        if arguments.only not in name:
            continue
        options = ["--micro", str(micro)], ["--micro", str(micro), "--mesh", f"pipeline={stages}"]
        turns = [[logged_steps_per_second(script, flags, own) for own in options] for _ in range(arguments.runs)]
        one, pipeline = (list(rates) for rates in zip(*turns, strict=True))
        measured = ratio(pipeline, one)
        medians = " | ".join(f"{statistics.median(rates):.2f}" for rates in (one, pipeline))
        possible = stages * micro / (micro + stages - 1)
        line = f"| {name} | {medians} | {measured} | {possible:.2f} | {least or ''} |"
        bounds[line] = measured.median >= (least or 0)
        print(f"{line} {('met' if bounds[line] else 'missed') if least else ''} |", flush=True)
    judge(bounds)


if __name__ == "__main__":
    main()
