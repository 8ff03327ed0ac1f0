"""How far asynchronous training is from itself and from synchronous: ``python benchmarks/async_spread.py [--seeds 7] [--steps 400]``.

Each seed orders the rows anew. Three ways train on it: asynchronous parameter servers by ``launch``, the same once more, and synchronous replicas.
Reported is the loss over all rows after the same number of updates, mean and standard deviation over the seeds, and how far the second and
the third are from the first: the mean difference at the same seed, in units of the first one's deviation.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
from pathlib import Path

from clusters import Run

JOB = str(Path(__file__).parent / "jobs" / "spread_training.py")
WAYS = {"asynchronous": (), "the same again": (), "synchronous": ("--sync",)}
DEADLINE = 300.0


def loss(seed: int, steps: int, options: tuple[str, ...]) -> float:
    """Of one training."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            "--worker",
            "1",
            "--ps",
            "1",
            JOB,
            f"--model_dir={folder}/model",
            f"--seed={seed}",
            f"--steps={steps}",
            *options,
        ]
        with Run(arguments, Path(folder)) as run:
            if not run.finish(DEADLINE):
                sys.exit("\n".join(run.lines[-20:]))
        (found,) = (match for line in run.lines if (match := re.search(r"\| loss (.+)", line)))
        return float(found[1])


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=400)
    flags = parser.parse_args()
    found = {way: [loss(seed, flags.steps, options) for seed in range(flags.seeds)] for way, options in WAYS.items()}
    first = found["asynchronous"]
    spread = statistics.stdev(first)
    for way, losses in found.items():
        apart = statistics.mean(losses) - statistics.mean(first)
        print(
            f"{way:<16} {statistics.mean(losses):.5f} +- {statistics.stdev(losses):.5f}  {apart / spread:+.2f} deviations apart"
        )


if __name__ == "__main__":
    main()
