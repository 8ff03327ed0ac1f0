"""The new script's own training batches beside those of the old script, which it is fed in their place."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.feeding import leaves_of

MOST = 200  # batches that are looked at
ENOUGH = 1000  # values of a tensor to judge their spread
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
            trace.write("inputs", seen=self._seen, equal=self._equal, spreads=spreads)


def has_fixed_order(graph: Any) -> bool:
    """Returns True if no operation of a graph or of its functions can give batches in another order the next time."""
    functions = graph.as_graph_def().library.function
    kinds = {op.type for op in graph.get_operations()} | {node.op for function in functions for node in function.node_def}
    return not any(part in kind for kind in kinds if "Dataset" in kind or "PyFunc" in kind for part in _UNORDERED)
