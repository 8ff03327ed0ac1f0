"""The new script's own training batches beside those of the old script, which it is fed in their place."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.result import ParityFinding
from estimator_bridge.parity.rewrite.feeding import leaves_of

MOST = 200  # batches that are looked at
ENOUGH = 64  # values of a tensor to judge their spread
_SPREAD = 1.5  # ratio of standard deviations that no other order or augmentation explains
_UNORDERED = ("Shuffle", "PyFunc", "Random", "Sampling")  # in types of operations that may give batches in another order


@dataclasses.dataclass
class Spread:
    """Sums over the values of a tensor."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: Any) -> None:
        """Adds an array."""
        values = np.asarray(value, np.float64)
        self.count += values.size
        self.total += float(values.sum())
        self.squares += float(np.square(values).sum())

    @property
    def mean(self) -> float:
        """Returns the mean."""
        return self.total / max(self.count, 1)

    @property
    def deviation(self) -> float:
        """Returns the standard deviation."""
        return float(np.sqrt(max(self.squares / max(self.count, 1) - self.mean**2, 0.0)))


class Inputs:
    """Compares own batches with recorded ones, in the structure of the new script."""

    def __init__(self) -> None:
        self._seen = self._equal = 0
        self._rows = [0, 0]
        self._spreads: dict[str, tuple[Spread, Spread]] = {}

    def add(self, own: Any, recorded: Any) -> None:
        """Looks at one batch of each; both have one structure."""
        if self._seen >= MOST:
            return
        self._seen += 1
        names = [leaf.path for leaf in leaves_of(recorded, isinstance(recorded, tuple))]
        pairs = list(
            zip(
                *([np.asarray(leaf) for leaf in tf.nest.flatten(side, expand_composites=True)] for side in (own, recorded)),
                strict=True,
            )
        )
        self._equal += all(np.array_equal(here, there) for here, there in pairs)
        for side in (0, 1):
            self._rows[side] = (self._rows[side] + row_sum([pair[side] for pair in pairs])) % 2**64
        for name, (here, there) in zip(names, pairs, strict=True):
            if name.startswith("features") and np.issubdtype(there.dtype, np.floating):
                spreads = self._spreads.setdefault(name, (Spread(), Spread()))
                spreads[0].add(here)
                spreads[1].add(there)

    def write(self, trace: Trace) -> None:
        """Writes what was seen."""
        if self._seen:
            spreads = {
                name: [own.mean, own.deviation, old.mean, old.deviation]
                for name, (own, old) in self._spreads.items()
                if min(own.count, old.count) >= ENOUGH
            }
            same = self._rows[0] == self._rows[1]
            trace.write("inputs", seen=self._seen, equal=self._equal, same_rows=same, spreads=spreads)


def row_sum(leaves: list[Any]) -> int:
    """Returns a number that depends on the rows of some tensors, and not on their order.

    Example:
        >>> rows = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> row_sum([rows]) == row_sum([rows[::-1]]), row_sum([rows]) == row_sum([rows[:, ::-1]])
        (True, False)
    """
    rows = np.zeros(len(leaves[0]) if leaves and leaves[0].ndim else 1, np.uint64)
    for place, leaf in enumerate(leaves):
        fixed = leaf.astype("S") if leaf.dtype == object else np.ascontiguousarray(leaf)
        if fixed.ndim == 0 or len(fixed) != len(rows):
            continue
        data = np.frombuffer(fixed.tobytes(), np.uint8).reshape(len(rows), -1).astype(np.uint64)
        factors = np.random.RandomState(place).randint(1, 2**63, data.shape[1], np.int64).astype(np.uint64)
        rows = rows * np.uint64(0x9E3779B97F4A7C15) + data @ factors
    rows = (rows ^ (rows >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return int(np.sum(rows ^ (rows >> np.uint64(32)), dtype=np.uint64))


def generators() -> tuple[Any, ...]:
    """Returns the state of Python's and NumPy's own random generators, which a script may use to shuffle."""
    return random.getstate(), str(np.random.get_state())


def has_fixed_order(graph: Any) -> bool:
    """Returns True if no operation of a graph or of its functions can give batches in another order the next time."""
    functions = graph.as_graph_def().library.function
    kinds = {op.type for op in graph.get_operations()} | {node.op for function in functions for node in function.node_def}
    return not any(part in kind for kind in kinds if "Dataset" in kind or "PyFunc" in kind for part in _UNORDERED)


def judge_inputs(old: Trace, new: Trace) -> tuple[list[ParityFinding], list[str]]:
    """Returns findings and notes on the new script's own batches.

    Args:
        old: Trace of the old side.
        new: Trace of the new side.
    """
    event: dict[str, Any] = next(new.events("inputs"), {})
    if not event:
        return [], []
    if event["equal"] == event["seen"]:
        return [], [f"The first {event['seen']} batches that the new script's own input gives are those of the old script."]
    far = list(_far(event["spreads"]))
    if far:
        return [ParityFinding("batch", f"The new script's own input gives other values: {'; '.join(far)}.", 1)], []
    if event["same_rows"] and any(fixed["fixed"] for fixed in old.events("order")):
        return [ParityFinding("batch", "The new script's own input gives the rows of the old script in another order.", 1)], []
    rows = "the same rows in another order" if event["same_rows"] else "other rows"
    return [], [f"The new script's own input gives {rows}; it ran on the old script's batches, so its input is not compared."]


def _far(spreads: dict[str, list[float]]) -> Iterator[str]:
    for name, (mean, deviation, old_mean, old_deviation) in spreads.items():
        ratio = max(deviation, 1e-30) / max(old_deviation, 1e-30)
        if not 1 / _SPREAD < ratio < _SPREAD or abs(mean - old_mean) > max(deviation, old_deviation):
            yield f"{name} has mean {mean:.3g}, standard deviation {deviation:.3g}; the old script's {old_mean:.3g}, {old_deviation:.3g}"
