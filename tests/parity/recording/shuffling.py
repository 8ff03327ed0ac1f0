"""Puts rows in an order with generators of a script's own, and prints what was seen of it: for a process of its own."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from estimator_bridge.parity.recording.randomness import (
    draws_anew,
    draws_rows,
    draws_values,
    may_have_drawn,
    seed_globals,
    state,
)

WAYS: dict[str, Callable[[], Any]] = {
    "RandomState.permutation": lambda: np.random.RandomState(3).permutation(5).tolist(),
    "RandomState.shuffle": lambda: np.random.RandomState(3).shuffle([1, 2, 3]),
    "RandomState.choice without repetition": lambda: np.random.RandomState(3).choice(5, 5, replace=False).tolist(),
    "default_rng": lambda: np.random.default_rng(3).permutation(5).tolist(),
    "Random.shuffle": lambda: random.Random(3).shuffle([1, 2, 3]),
    "values": lambda: [np.random.RandomState(3).randn(2).tolist(), np.random.RandomState(3).choice(5, 5).tolist()],
    "values of default_rng": lambda: np.random.default_rng(3).normal(size=2).tolist(),
    "scikit-learn's shuffle": lambda: importlib.import_module("sklearn.utils").shuffle([1, 2, 3], random_state=3),
    "scipy.stats' own values, while it is imported": lambda: importlib.import_module("scipy.stats").__name__,
    "draws after a seed": lambda: [np.random.seed(5), np.random.rand(2).tolist()],
    "own seed": lambda: np.random.seed(5),
    "values without a seed": lambda: bool(np.random.RandomState().rand() < 1.0),
    "values of default_rng without a seed": lambda: bool(np.random.default_rng().normal() < 9.0),
    "values of Python's own generator": lambda: random.random() < 1.0,
    "own values of a seeded generator of Python": lambda: random.Random(3).random(),
    "NumPy's own generator": lambda: isinstance(np.random.mtrand._rand, np.random.RandomState),
}


def seen(name: str) -> tuple[Any, bool, bool, bool, bool]:
    """Returns what a generator gives, and whether it counts as an order of rows, as a source of values, of other ones in each run, and now."""
    before = state()
    return WAYS[name](), draws_rows(), draws_values(), draws_anew(), may_have_drawn(before)


def each(function: Callable[[str], Any]) -> dict[str, Any]:
    """Returns what a function gives for each way, each in a process that has imported nothing for another one."""
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        return dict(zip(WAYS, pool.map(function, WAYS, chunksize=1), strict=True))


def plain(name: str) -> Any:
    """Returns what a generator gives without anything that looks at it."""
    return WAYS[name]()


def main() -> None:
    before = each(plain)
    random.seed(0)
    seed_globals()
    sys.stdout.write(json.dumps({name: [*found, before[name]] for name, found in each(seen).items()}))


if __name__ == "__main__":
    main()
