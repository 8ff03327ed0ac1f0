"""``estimator-bridge launch`` against tasks started by hand with TF_CONFIG, in turn: ``python benchmarks/cluster.py [--runs 7] [--routes async]``.

Both run jobs/cluster_training.py by ``estimator-bridge run`` on this machine. Measured are the global steps per second while all tasks train,
and the seconds from the command to the first step of any task and of all tasks. Ratios are taken within each turn. Reported are the median of
the turns and the interval that holds the true median with 95 % probability. One turn of one route: ``--runs 1 --routes async``.

``--hooked`` measures the modern path against the legacy path instead, both by ``launch``: the job's session hook sees each step.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from clusters import ByHand, Run, Seen
from turns import ratio

JOB = str(Path(__file__).parent / "jobs" / "cluster_training.py")
ROUTES = {
    "async": ("legacy", "async", {"chief": 1, "worker": 2, "ps": 2}),
    "sync": ("legacy", "sync", {"chief": 1, "worker": 1, "ps": 1}),
    "mirrored": ("legacy", "mirrored", {"chief": 1, "worker": 1}),
    "modern mirrored": ("modern", "mirrored", {"chief": 1, "worker": 1}),
    "modern ps": ("modern", "async", {"chief": 1, "worker": 2, "ps": 1}),
}
"""Mapping from a route to its path, the job's --strategy and its tasks."""
DEADLINE = 600.0
WAYS = ("by hand", "launch")
PATHS = ("legacy", "modern")


class Figures(NamedTuple):
    """Figures of one run."""

    steps_per_second: float
    first_step: float
    all_train: float


def measured(way: str, route: str, steps: int) -> Figures:
    """Runs the job to its end and returns its figures."""
    path, strategy, counts = ROUTES[route]
    path = way if way in PATHS else path
    folder = tempfile.mkdtemp()  # kept if a run fails, because the logs are in it
    command = [
        "--path",
        path,
        JOB,
        f"--model_dir={folder}/model",
        f"--steps={steps}",
        f"--strategy={strategy}",
        "--save_every=100000",
    ]
    started = time.time()
    cluster: ByHand | Run
    if way == "by hand":
        cluster = ByHand(counts, command)
    else:
        cluster = Run([*(word for job, n in counts.items() for word in (f"--{job}", str(n))), *command], Path(folder))
    with cluster:
        if not cluster.finish(DEADLINE):
            sys.exit(f"{route} {way}: the run did not end, or failed; see {folder}")
    if cluster.lives > len(cluster.pids):
        sys.exit(f"{route} {way}: a task was restarted; see {folder}")
    shutil.rmtree(folder)
    return Figures(rate(cluster), min(cluster.first_steps.values()) - started, max(cluster.first_steps.values()) - started)


def rate(seen: Seen) -> float:
    """Returns the global steps per second from the first step of the last task to the end of the first."""
    begin, end = max(seen.first_steps.values()), min(seen.ends.values())
    within = [(at, step) for at, _, step, _ in seen.steps if begin <= at <= end]
    if len(within) < 2:
        sys.exit("At no time did all tasks train: more --steps are needed.")
    (first_at, first), (last_at, last) = within[0], within[-1]
    return (last - first) / (last_at - first_at)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=["async"])
    parser.add_argument(
        "--steps",
        type=int,
        default=10000,
        help="number of steps; enough for the last worker, which starts 15 s after the first",
    )
    parser.add_argument("--hooked", action="store_true", help="the modern path against the legacy path")
    arguments = parser.parse_args()
    print("| route | way | steps/s | first step, s | all train, s |\n|---|---|---|---|---|")
    ways = PATHS if arguments.hooked else WAYS
    for route in arguments.routes:
        figures: dict[str, list[Figures]] = {way: [] for way in ways}
        for turn in range(arguments.runs):
            for way in ways if turn % 2 == 0 else reversed(ways):
                figures[way].append(measured(way, route, arguments.steps))
                print(f"turn {turn + 1} {route} {way}: {figures[way][-1]}", file=sys.stderr)
        for way in ways:
            medians = (f"{statistics.median(values):.1f}" for values in zip(*figures[way], strict=True))
            print(f"| {route} | {way} | {' | '.join(medians)} |")
        theirs, ours = (list(zip(*figures[way], strict=True)) for way in ways)
        ratios = (str(ratio(*pair)) for pair in zip(ours, theirs, strict=True))
        print(f"| {route} | {ways[1]} / {ways[0]} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()
