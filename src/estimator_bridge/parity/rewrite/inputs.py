"""The new script's own training batches beside those of the old script, which it is fed in their place."""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.modern.graph.fragments import upstream
from estimator_bridge.parity.causes.structure.batches import MANY_SIZES
from estimator_bridge.parity.recording.randomness import STATEFUL_RANDOM
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.rewrite.feeding import leaves_of
from estimator_bridge.parity.rewrite.input_findings import any_shuffles
from estimator_bridge.parity.values import rounded
from estimator_bridge.runtime.batch_digest import batch_digest

MOST = 200  # batches that are looked at
MOST_ROWS = 20_000  # rows and values that are kept
TRAINING = "training"
ENOUGH = 1000  # values of a tensor to judge their spread
FEW = 0.05  # share of values that may be common by chance
AGAIN = 0.2  # share of rows that were read before, so that a side has read most of its data
PAIRS = 32  # values of a tensor to judge that one side's are a multiple of the other's
_UNORDERED = ("PyFunc", "Random", "Sampling")  # in types of operations that may give batches in another order
_DRAWS = re.compile("Random|Sampl|Stateless")  # in types of operations that draw numbers
MOST_TENSORS = 64  # of a batch whose rows are compared tensor by tensor
_WIDE = 16  # floats of a row
_ENOUGH_ROWS = 20  # rows of both sides, to judge what they have in one tensor
_BY_CHANCE = 0.05  # share of rows that may be equal but for one tensor
_UNEXPLAINED, _APART = 1e-8, 1e-3  # of the variance, that a line leaves over; of slope and offset


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


@dataclasses.dataclass
class SpreadPair:
    """Sums over the values of a tensor of both sides.

    Attributes:
        own, old: Sums over each side's values.
        products: Sum over the products of both sides' values; NaN if shapes differ.
    """

    own: Spread = dataclasses.field(default_factory=Spread)
    old: Spread = dataclasses.field(default_factory=Spread)
    products: float = 0.0

    def add(self, own: Any, old: Any) -> None:
        """Adds an array of each side."""
        self.own.add(own)
        self.old.add(old)
        here, there = (np.asarray(side, np.float64).ravel() for side in (own, old))
        self.products += float(here @ there) if np.shape(own) == np.shape(old) else np.nan

    def line(self) -> list[float] | None:
        """Returns (slope, offset) of own = slope * old + offset; None if no line leads through all values, or if they are equal."""
        own, old = self.own.deviation, self.old.deviation
        if not own or not old or self.old.count < PAIRS:
            return None
        slope = (self.products / self.old.count - self.own.mean * self.old.mean) / old**2
        offset = self.own.mean - slope * self.old.mean
        is_line = abs(1 - (slope * old / own) ** 2) <= _UNEXPLAINED
        offset = offset if abs(offset) > _APART * own else 0.0
        is_other = abs(slope - 1) > _APART or offset
        return [slope, offset] if is_line and is_other else None


@dataclasses.dataclass
class TensorPair:
    """A tensor of both sides' batches, as long as these have as many rows.

    Attributes:
        others: Number of batches in which it differs by more than rounding.
        has_other_shape: True if a batch has another shape, e.g. is padded to another length.
        is_wide: True if a row has so many floats that rounding often makes its digest another one.
    """

    others: int = 0
    has_other_shape: bool = False
    is_wide: bool = False

    def add(self, own: Any, old: Any) -> None:
        """Adds an array of each side."""
        self.has_other_shape |= own.shape != old.shape
        self.is_wide |= np.issubdtype(old.dtype, np.floating) and old.size > _WIDE * max(len(old) if old.ndim else 1, 1)
        self.others += not self.has_other_shape and not _are_close(own, old)


class Inputs:
    """Compares own batches with recorded ones, in the structure of the new script.

    Args:
        is_drawn: True if values of the old script's batches may be random, e.g. of images that are turned.
    """

    def __init__(self, is_drawn: bool = False) -> None:
        self._is_drawn = is_drawn
        self._tensors: dict[str, TensorPair] = defaultdict(TensorPair)
        self._digests: tuple[list[Any], list[Any]] = ([], [])  # of each row and tensor of the training
        self._seen = self._equal = 0
        self._other_size: tuple[int, int, int] | None = (
            None  # number of the first batch with other rows, and both numbers of rows
        )
        self._sizes: tuple[set[int], set[int]] = (set(), set())
        self._floats: set[str] = set()
        self._spreads: dict[str, SpreadPair] = {}
        self._values: dict[str, tuple[set[Any], set[Any]]] = {}
        self._whole: set[str] = set()  # evaluations that read all of their data
        self._rows_of: dict[str, tuple[Counter[int], Counter[int]]] = defaultdict(lambda: (Counter(), Counter()))

    @property
    def _own_rows(self) -> Counter[int]:
        return self._rows_of[TRAINING][0]

    @property
    def _rows(self) -> Counter[int]:
        return self._rows_of[TRAINING][1]

    def add_rows(self, own: Iterable[int], recorded: Iterable[int], call: str = TRAINING) -> None:
        """Keeps the digests of the rows of one batch of each, of the training or of an evaluation."""
        for rows, more in zip(self._rows_of[call], (own, recorded), strict=True):
            rows.update(more)

    def add_training(self, own: Any, recorded: Any) -> None:
        """Keeps the digests of the rows of one training batch of each, and of their tensors."""
        here, there = (
            row_digests([array[:MOST_ROWS] if array.ndim else array for array in _rounded(side)]) for side in (own, recorded)
        )
        self.add_rows(_whole_rows(here), _whole_rows(there))
        if sum(map(len, self._digests[0])) < MOST_ROWS:
            self._digests[0].append(here)
            self._digests[1].append(there)

    def _of_rows(self) -> tuple[Any, Any] | None:
        """Returns the digests of each side's rows, [rows, tensors]; None if they are not to be judged."""
        kept = [part for side in self._digests for part in side]
        is_known = (
            bool(kept) and {part.shape[1] for part in kept} == {len(self._tensors)} and len(self._tensors) <= MOST_TENSORS
        )
        return None if self._is_drawn or not is_known else (np.concatenate(self._digests[0]), np.concatenate(self._digests[1]))

    def _other_tensors(self) -> dict[str, list[int]]:
        """Returns the tensors with other values in batches whose order another tensor shows to be the old script's: in how many of them."""
        digests = self._of_rows()
        if digests is None:
            return {}
        columns = zip(digests[1].T, self._tensors.values(), strict=True)
        if not any(_tells_order(rows) for rows, pair in columns if not pair.others and not pair.has_other_shape):
            return {}
        return {
            name: [pair.others, self._seen] for name, pair in self._tensors.items() if pair.others and self._is_judged(name)
        }

    def _is_judged(self, name: str) -> bool:
        """Returns False for a tensor of other shapes, and for labels that are all the same, as where the loss reads them elsewhere."""
        is_constant = name in self._spreads and not self._spreads[name].own.deviation
        return not self._tensors[name].has_other_shape and not (is_constant and name.startswith("labels"))

    def _other_parts(self) -> dict[str, list[int]]:
        """Returns the tensors that differ in rows that both sides have but for them: in how many of how many."""
        digests, names = self._of_rows(), list(self._tensors)
        if digests is None:
            return {}
        labels = [name for name in names if name.startswith("labels")]
        groups = {name: [name] for name in names} | ({"labels": labels} if len(labels) > 1 else {})
        found: dict[str, list[int]] = {}
        for name, group in groups.items():
            is_judged = all(self._is_judged(one) and not self._tensors[one].is_wide for one in group)
            if is_judged and len(group) < len(names):
                wrong, matched = _rows_with_another_part(*digests, [names.index(one) for one in group])
                found |= {name: [wrong, matched]} if wrong else {}
        return found

    def has_room(self, call: str) -> bool:
        """Returns False for an evaluation with so many rows that the further ones are not kept, so that nothing is said of it."""
        return all(sum(rows.values()) < MOST_ROWS for rows in self._rows_of[call])

    def read_whole(self, call: str) -> None:
        """Keeps that the script's own data of a call was read to its end."""
        self._whole.add(call)

    def _other_evaluations(self) -> dict[str, list[int]]:
        """Returns the evaluations of whole data without any row of the old script's, with their numbers of rows.

        Where the trainings share no row either, rows are prepared in another way, or drawn.
        """
        return {
            call: [len(own), len(recorded)]
            for call, (own, recorded) in self._rows_of.items()
            if call in self._whole
            and self.has_room(call)
            and own
            and recorded
            and not own.keys() & recorded.keys()
            and self._own_rows.keys() & self._rows.keys()
        }

    def _are_other_rows(self) -> bool:
        """Returns True if both sides read rows again and again, and none is a row of the other."""
        again = [sum(rows.values()) - len(rows) for rows in (self._own_rows, self._rows)]
        return min(again) >= AGAIN * sum(self._rows.values()) > 0 and not self._own_rows.keys() & self._rows.keys()

    def _apart(self) -> dict[str, float]:
        """Returns the tensors with hardly a common value, with the ratio of their standard deviations; none if that holds for all."""
        apart = [name for name, (own, old) in self._values.items() if len(own & old) < FEW * min(len(own), len(old))]
        pairs = {name: self._spreads[name] for name in apart if len(apart) < len(self._values)}
        return {name: pair.own.deviation / max(pair.old.deviation, 1e-30) for name, pair in pairs.items()}

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
        self._equal += all(_are_equal(here, there) for here, there in pairs)
        lengths = [{len(array) for array in side if array.ndim} for side in zip(*pairs, strict=True)]
        if lengths and all(len(found) == 1 for found in lengths):  # parts of sparse tensors have others
            (own_size,), (old_size,) = lengths
            for sizes, size in zip(self._sizes, (own_size, old_size), strict=True):
                sizes.add(size)
            if own_size != old_size and not self._other_size:
                self._other_size = self._seen, own_size, old_size
        for name, (here, there) in zip(names, pairs, strict=True):
            if not self._other_size:
                self._tensors[name].add(here, there)
            if np.issubdtype(here.dtype, np.number) and np.issubdtype(there.dtype, np.number):
                self._floats |= {name} if np.issubdtype(there.dtype, np.floating) else set()
                self._spreads.setdefault(name, SpreadPair()).add(here, there)
                for values, side in zip(self._values.setdefault(name, (set(), set())), (here, there), strict=True):
                    if len(values) < MOST_ROWS:
                        values.update(side.ravel()[:MOST_ROWS].tolist())

    def write(self, trace: Trace) -> None:
        """Writes what was seen."""
        if self._seen:
            spreads = {
                name: [pair.own.mean, pair.own.deviation, pair.old.mean, pair.old.deviation]
                for name, pair in self._spreads.items()
                if name.startswith("features") and name in self._floats and min(pair.own.count, pair.old.count) >= ENOUGH
            }
            shared = len(self._own_rows.keys() & self._rows.keys())
            if shared:  # the same data: a file in time's order, and one with its rows shuffled
                spreads = {}
            lines = {name: line for name, pair in self._spreads.items() if (line := pair.line())}
            distinct = len(self._own_rows) if self._are_other_rows() else 0
            trace.write(
                "inputs",
                seen=self._seen,
                equal=self._equal,
                spreads=spreads,
                lines=lines,
                others=distinct,
                tensors=self._other_tensors(),
                parts=self._other_parts(),
                apart=self._apart() if distinct else {},
                evaluations=self._other_evaluations(),
                rows=len(self._own_rows),
                shared=shared,
                other_size=self._other_size if min(map(len, self._sizes)) < MANY_SIZES else None,
            )


def rows_of(arrays: Sequence[Any]) -> tuple[int, list[int]]:
    """Returns the number of rows of a batch, and their digests; one digest of all if they cannot be told apart."""
    rows = next((len(array) for array in arrays if array.ndim), 1)
    return rows, _whole_rows(row_digests(arrays))


def row_digests(arrays: Sequence[Any]) -> Any:
    """Returns the digests of a batch as an array, [rows, tensors]; one digest, [1, 1], if rows cannot be told apart."""
    rows = next((len(array) for array in arrays if array.ndim), 1)
    if any(array.ndim == 0 or len(array) != rows for array in arrays):  # e.g. the components of sparse tensors
        return np.array([[int(batch_digest([tf.convert_to_tensor(array) for array in arrays]))]])
    found = [[zlib.crc32(_bytes(row), number) for row in array] for number, array in enumerate(arrays)]
    return np.array(found, np.int64).T


def _whole_rows(digests: Any) -> list[int]:
    return [zlib.crc32(row.tobytes()) for row in digests]


def rounded_rows(batch: Any) -> list[int]:
    """Returns the digests of a batch's rows, which rounding has not changed."""
    return rows_of(_rounded(batch))[1]


def _rounded(batch: Any) -> list[Any]:
    return [rounded(np.asarray(value)) for value in tf.nest.flatten(batch, expand_composites=True)]


def _bytes(value: Any) -> bytes:
    array = np.asarray(value)
    if array.dtype.kind not in "OSU":
        return array.tobytes()
    return repr([one.encode() if isinstance(one, str) else one for one in array.ravel().tolist()]).encode()


def _are_equal(own: Any, old: Any) -> bool:
    is_text = any(side.dtype.kind in "OSU" for side in (own, old))  # as that of an array, and of a tensor
    return _bytes(own) == _bytes(old) if is_text else bool(np.array_equal(own, old))


def _are_close(own: Any, old: Any) -> bool:
    if _are_equal(own, old):
        return True
    if not all(np.issubdtype(side.dtype, np.floating) for side in (own, old)):
        return False
    largest = np.abs(old[np.isfinite(old)]).max(initial=0.0)
    return bool(np.allclose(own, old, _APART, _APART**2 * largest, equal_nan=True))


def _tells_order(rows: Any) -> bool:
    """Returns True if no other order of rows gives the same values of one tensor: they differ from row to row, and do not come class by class.

    Args:
        rows: Digest of each row, in order.
    """
    _, counts = np.unique(rows, return_counts=True)
    by_chance = 1 - float(np.square(counts / len(rows)).sum())
    changes = int((rows[1:] != rows[:-1]).sum())
    return changes >= max(_ENOUGH_ROWS, by_chance * (len(rows) - 1) / 2)


def _rows_with_another_part(own: Any, old: Any, columns: list[int]) -> tuple[int, int]:
    """Returns how many rows of both sides differ in some tensors alone, and how many are equal in the others; 0 if so by chance.

    Args:
        own, old: Digests of each side, [rows, tensors].
        columns: Numbers of these tensors.
    """
    pairs = [
        set(zip(np.delete(side, columns, 1).sum(1).tolist(), side[:, columns].sum(1).tolist(), strict=True))
        for side in (own, old)
    ]
    counts = [Counter(others for others, _ in side) for side in pairs]
    ambiguous = max(sum(count > 1 for count in side.values()) / len(side) for side in counts)
    matched = [pair for pair in pairs[0] if pair[0] in counts[1]]
    wrong = sum(pair not in pairs[1] for pair in matched)
    is_other = len(matched) >= _ENOUGH_ROWS and wrong / len(matched) > _BY_CHANCE + 5 * ambiguous
    return (wrong if is_other else 0), len(matched)


def dataset_shuffles(dataset: Any) -> bool | None:
    """Returns True if a dataset shuffles, False if its order is fixed; None if that is not known.

    Args:
        dataset: A ``tf.data.Dataset``.
    """
    found = ["Shuffle" in type(dataset).__name__, *(graph_shuffles(one.function.graph) for one in dataset._functions())]
    return any_shuffles(*found, *map(dataset_shuffles, dataset._inputs()))


def graph_shuffles(graph: Any) -> bool | None:
    """Returns True if a graph or one of its functions shuffles input; None if it may give batches in another order the next time."""
    functions = graph.as_graph_def().library.function
    kinds = {op.type for op in graph.get_operations()} | {node.op for function in functions for node in function.node_def}
    if any("Shuffle" in kind and ("Dataset" in kind or "Queue" in kind) for kind in kinds):
        return True
    may = any(part in kind for kind in kinds if "Dataset" in kind or "PyFunc" in kind for part in _UNORDERED)
    return None if may or "RandomShuffle" in kinds else False


def graph_draws(graph: Any, batch: Sequence[Any]) -> bool | None:
    """Returns True if TensorFlow may draw values of a batch, False if nothing does; None if Python may.

    Args:
        graph: Graph of the script's input.
        batch: Tensors of the batch.
    """
    functions = graph.as_graph_def().library.function
    of_graph = {op.type for op in graph.get_operations()}
    kinds = {op.type for op in upstream([tensor.op for tensor in batch])} | {kind for kind in of_graph if "Dataset" in kind}
    kinds |= {node.op for one in functions for node in one.node_def}
    is_mixed = "ZipDataset" in kinds and graph_shuffles(graph) is True  # rows of one dataset may meet any of another
    if is_mixed or any((kind in STATEFUL_RANDOM or _DRAWS.search(kind)) and "Shuffle" not in kind for kind in kinds):
        return True
    return None if any("PyFunc" in kind for kind in kinds) else False
