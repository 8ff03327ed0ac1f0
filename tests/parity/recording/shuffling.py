"""Puts rows in an order with generators of a script's own, and prints what was seen of it: for a process of its own."""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from estimator_bridge.parity.recording.randomness import draws_rows, seed_globals

WAYS: dict[str, Callable[[], Any]] = {
    "RandomState.permutation": lambda: np.random.RandomState(3).permutation(5).tolist(),
    "RandomState.shuffle": lambda: np.random.RandomState(3).shuffle([1, 2, 3]),
    "RandomState.choice without repetition": lambda: np.random.RandomState(3).choice(5, 5, replace=False).tolist(),
    "default_rng": lambda: np.random.default_rng(3).permutation(5).tolist(),
    "Random.shuffle": lambda: random.Random(3).shuffle([1, 2, 3]),
    "values": lambda: [np.random.RandomState(3).randn(2).tolist(), np.random.RandomState(3).choice(5, 5).tolist()],
    "values of default_rng": lambda: np.random.default_rng(3).normal(size=2).tolist(),
    "NumPy's own generator": lambda: isinstance(np.random.mtrand._rand, np.random.RandomState),
}


def seen(name: str) -> tuple[Any, bool]:
    """Returns what a generator gives, and whether it counts as an order of rows."""
    return WAYS[name](), draws_rows()


def main() -> None:
    plain = {name: way() for name, way in WAYS.items()}
    random.seed(0)
    seed_globals()
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        found = dict(zip(WAYS, pool.map(seen, WAYS, chunksize=1), strict=True))
    sys.stdout.write(json.dumps({name: [*found[name], plain[name]] for name in WAYS}))


if __name__ == "__main__":
    main()
