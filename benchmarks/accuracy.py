"""Compares the accuracy of all strategies: ``python benchmarks/accuracy.py > docs/explanation/cluster-accuracy.md`` (ten minutes).

Each strategy trains the classifier of jobs/accuracy_classifier.py by ``estimator-bridge launch``; numpy trains it too, in float64. Strategies
with a fixed order of updates are compared in pairs. Asynchronous training differs from run to run: there, the final losses are compared over
seeds, and each seed orders the rows differently. The exit code is 1 if any difference is larger than its bound.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from clusters import Run

JOBS = Path(__file__).parent / "jobs"
sys.path.append(str(JOBS))

from accuracy_classifier import X, Y, by_hand, loss  # noqa: E402 -- jobs are for other Pythons, too, and no package

DEADLINE = 300.0
LEAST_CHANCE = 0.01
BY_HAND = "float64"
NAMES = {
    "async": "no strategy",
    "sync": "`SyncReplicasOptimizer`",
    "mirrored": "`MirroredStrategy`",
    "multi_worker": "`MultiWorkerMirroredStrategy`",
    "central": "`CentralStorageStrategy`",
    "one_device": "`OneDeviceStrategy`",
    "servers": "`ParameterServerStrategy`",
    "numpy": "numpy",
}


class Route(NamedTuple):
    """A way to train.

    Attributes:
        name: Key of NAMES; the job's --route.
        path: One of "legacy", "modern" and BY_HAND.
        replicas: Number of replicas that share a global batch.
        worker, ps: Numbers of tasks beside the chief.
        idle: True if the workers have no input.
    """

    name: str
    path: str = "legacy"
    replicas: int = 1
    worker: int = 0
    ps: int = 0
    idle: bool = False

    def __str__(self) -> str:
        tasks = [f"{job} {number}" for job, number in (("chief", 1), ("worker", self.worker), ("ps", self.ps)) if number]
        there = ", ".join(tasks) if self.worker else f"{self.replicas} replicas" if self.replicas > 1 else ""
        return f"{NAMES[self.name]}, {self.path}" + f" ({there}{', the worker without input' * self.idle})" * bool(there)


def modern(route: Route) -> Route:
    """Returns the same route on the modern path."""
    return route._replace(path="modern")


MIRRORED_2, MIRRORED_3 = (Route("mirrored", replicas=number) for number in (2, 3))
SYNC_2, SYNC_3 = (Route("sync", replicas=number, worker=number - 1, ps=2) for number in (2, 3))
WORKERS = Route("multi_worker", replicas=2, worker=1)
ON_BOTH_PATHS = (
    MIRRORED_2,
    MIRRORED_3,
    WORKERS,
    Route("one_device"),
    Route("central"),
    Route("async", worker=1, ps=2, idle=True),
    Route("servers", worker=1, ps=2, idle=True),
)
PAIRS = (
    (SYNC_2, MIRRORED_2, 0.0),
    (SYNC_3, MIRRORED_3, 1e-6),
    (SYNC_2, modern(MIRRORED_2), 1e-6),
    (SYNC_3, modern(MIRRORED_3), 1e-6),
    (WORKERS, MIRRORED_2, 0.0),
    (modern(WORKERS), modern(MIRRORED_2), 0.0),
    *((route, modern(route), 1e-6) for route in ON_BOTH_PATHS),
    *((route, Route("numpy", BY_HAND, route.replicas), 1e-6) for route in (SYNC_2, SYNC_3, *ON_BOTH_PATHS)),
)
"""Pairs of routes, and the largest difference allowed; 0 means the same bits."""
ASYNC = Route("async", worker=2, ps=1)
SERVERS = ASYNC._replace(name="servers")
SPREADS = (
    ("", ASYNC, 1.0),
    (", again", ASYNC, 1.0),
    *(("", route, 1.0) for route in (modern(ASYNC), SERVERS, modern(SERVERS))),
    (", half of the steps", ASYNC, 0.5),
)
"""Asynchronous routes, compared with the first two. The test has to detect the last one, which makes half of the updates."""


class Result(NamedTuple):
    """A training's loss of the first replica at each step, and the variables of its last checkpoint."""

    losses: Any
    variables: dict[str, Any]


def trained(route: Route, steps: int, *options: str) -> Result:
    """Trains by a route and returns the result."""
    if route.path == BY_HAND:
        losses, variables = by_hand(steps, route.replicas)
        return Result(np.array(losses), variables | {"global_step": np.int64(steps)})
    print(route, *options, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        flags = {"model_dir": model, "steps": steps, "route": route.name, "replicas": route.replicas}
        said = [f"--{name}={value}" for name, value in flags.items()] + ["--idle"] * route.idle
        tasks = [f"--worker={route.worker}", f"--ps={route.ps}", f"--path={route.path}"]
        with Run([*tasks, str(JOBS / "accuracy_training.py"), *said, *options], Path(folder)) as run:
            if not run.finish(DEADLINE):
                sys.exit("\n".join(run.lines[-30:]))
        reader = tf.train.load_checkpoint(str(model))
        variables = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
        return Result(np.load(model / "chief-0.npy"), variables)


def apart(one: Result, other: Result) -> tuple[float, float, float]:
    """Returns the largest differences: of a loss, of a number in a variable, and of such a number relative to its variable's largest.

    A difference is NaN if one of the values is: numpy's maximum propagates NaN, Python's may not.
    """
    if one.variables.keys() != other.variables.keys() or len(one.losses) != len(other.losses):
        return math.inf, math.inf, math.inf
    largest = [np.abs(value - one.variables[name]).max() for name, value in other.variables.items()]
    sizes = [np.abs(value).max() or 1.0 for value in other.variables.values()]
    return float(np.abs(one.losses - other.losses).max()), float(np.max(largest)), float(np.max(np.divide(largest, sizes)))


def in_step(steps: int) -> tuple[list[str], bool]:
    """Returns the rows of the table of pairs, and True if all pairs are within their bounds."""
    results = {route: trained(route, steps) for route in dict.fromkeys(itertools.chain(*(pair[:2] for pair in PAIRS)))}
    rows, fine = [], True
    for one, other, bound in PAIRS:
        differences = apart(results[one], results[other])
        within = bool(np.max(differences[:2]) <= bound)
        fine &= within
        verdict = (
            "the same bits" if not any(differences) else f"within {bound:g}" if within else f"APART by more than {bound:g}"
        )
        rows.append(row(one, other, *(f"{value:.1e}" if value else "0" for value in differences), verdict))
    return rows, fine


def asynchronous(steps: int, seeds: int) -> tuple[list[str], bool]:
    """Returns the rows of the table of spreads, and True if chance explains all of them except the last."""
    losses: list[list[float]] = [[] for _ in SPREADS]
    for seed, (found, (_, route, part)) in itertools.product(range(seeds), zip(losses, SPREADS, strict=True)):
        variables = trained(route, round(part * steps), f"--seed={seed}").variables
        found.append(float(loss(variables, X.astype(np.float64), Y)))
        print(found[-1], file=sys.stderr, flush=True)
    rows, fine = [], True
    for number, ((words, route, part), found) in enumerate(zip(SPREADS, losses, strict=True)):
        likely = chance(found, losses[0] + losses[1] if number > 1 else losses[1 - number])
        fine &= (likely >= LEAST_CHANCE) == (part == 1)
        mean, deviation = statistics.mean(found), statistics.stdev(found)
        verdict = "within the spread" if likely >= LEAST_CHANCE else "APART"
        cells = f"{mean:.4f} +- {deviation:.4f}", f"{min(found):.4f} to {max(found):.4f}", f"{likely:.2g}", verdict
        rows.append(row(f"{route}{words}", *cells))
    return rows, fine


def chance(some: Sequence[float], others: Sequence[float]) -> float:
    """Returns the share of all splits into groups of these sizes whose means are at least as far apart as those of the given groups."""
    both = np.array([*some, *others])
    deals = [both[list(hand)].mean() for hand in itertools.combinations(range(len(both)), len(some))]
    distances = np.abs(np.array(deals) - both.mean())
    return float((distances >= distances[0] - 1e-12).mean())  # the first deal is how they are


def row(*cells: object) -> str:
    """Returns a row of a Markdown table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Prints the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=7)
    flags = parser.parse_args()
    equal, all_equal = in_step(flags.steps)
    spread, all_within = asynchronous(flags.steps, flags.seeds)
    print(f"""# Accuracy across strategies

For anyone who wants to know how close the strategies of both paths are to each other. Written by

```sh
python benchmarks/accuracy.py > docs/explanation/cluster-accuracy.md
```

with TensorFlow {tf.__version__}: a classifier of two layers, trained by `estimator-bridge launch` for {flags.steps} steps with momentum, over the same global
batches with every strategy.

## Synchronous training, and training by one task

Here the order of the updates is fixed. The columns have the largest difference of

- Loss: the first replica's loss, over all steps;
- Variables: a number in a variable or slot of the last checkpoint;
- Relative: such a number, in parts of the largest number of its variable.

The first two are judged. "float64" is the same training written out in numpy.

| One | Other | Loss | Variables | Relative | |
|---|---|---|---|---|---|
{chr(10).join(equal)}

## Asynchronous training

The loss over all rows after {flags.steps} steps of three trainers, over {flags.seeds} seeds: mean and standard deviation, range, and a chance. It is the
chance that two sets of runs that do not differ have means as far apart as those of this row and of the first two rows. The first two rows
are compared with each other. It comes from a permutation test, and less than {LEAST_CHANCE:g} counts as a difference. The last row, in which half
of the updates are left out, shows that the test detects one. Only means are judged; the third column shows how far single runs lie
apart.

| Route | Loss | From, to | Chance | |
|---|---|---|---|---|
{chr(10).join(spread)}""")
    sys.exit(not (all_equal and all_within))


if __name__ == "__main__":
    main()
