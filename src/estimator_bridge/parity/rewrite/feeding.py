"""Recorded batches of the old script in the structure of the new script's batches."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.recording.batches import named_leaves
from estimator_bridge.parity.values import rounded

_PARTS = ("features", "labels", "weights")
_LABELS = ("label", "target")
WEIGHTS = "weights"
OWN = -1  # in place of a recorded tensor's number
MOST_CHOICES = 5040  # pairings that are tried
EQUAL = 2.0  # likeness of equal arrays; that of others is the share of their elements that both have
CLEAR, CHANCE = 0.5, 4.0  # lead in likeness that is enough, and multiple of 1 / sqrt(elements) that chance gives
_UNSURE = "neither names nor values decide; if it is wrong, --adapt module:function makes the batch"
Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A tensor of a batch.

    Attributes:
        path: Place in the batch, e.g. "features/x" or "labels".
        dtype: Name of its dtype.
        rank: Number of dimensions; None if it is not known.
        last: Size of the last dimension; None if it is not known.
        row: Shape without the batch dimension; None if the rank is not known.
        rows: Size of the batch dimension; None if it is not known, or varies.
    """

    path: str
    dtype: str
    rank: int | None
    last: int | None = None
    row: tuple[int | None, ...] | None = None
    rows: int | None = None

    def __str__(self) -> str:
        return f"{self.path} ({self.dtype}, {'unknown rank' if self.rank is None else f'rank {self.rank}'})"


def leaves_of(structure: Any, has_labels: bool) -> list[Leaf]:
    """Returns the tensors of a batch or of its specification.

    Args:
        structure: Features, or (features, labels) if ``has_labels``; tensors, arrays or TensorSpecs. Components of composite
            tensors are numbered.
        has_labels: True if the structure is a tuple of features, labels and possibly weights.
    """
    named = dict(zip(_PARTS, structure, strict=False)) if has_labels else {"features": structure}
    return [_leaf(*pair) for pair in named_leaves({name: part for name, part in named.items() if part is not None})]


def _leaf(path: str, value: Any) -> Leaf:
    shape = tf.TensorShape(value.shape)
    sizes = tuple(shape.as_list()) if shape.rank else (None,)
    return Leaf(path, tf.as_dtype(value.dtype).name, shape.rank, sizes[-1], sizes[1:] if shape.rank else None, sizes[0])


_Way = tuple[str, Callable[[Leaf, Leaf], bool]]
_ORDER = "order"


def pair(
    old: Sequence[Leaf], new: Sequence[Leaf], say: Say, recorded: Sequence[Any] = (), own: Sequence[Any] = ()
) -> list[int]:
    """Finds the recorded tensor for each tensor of the new script's batch: by name, type and rank, values, then order.

    Args:
        old: Recorded tensors.
        new: Tensors that the new script expects.
        say: Function that takes a note about each pair that has different names.
        recorded: Arrays of a recorded batch; empty if values do not count.
        own: Arrays of the new script's own batch of the same step.

    Returns:
        The index in ``old`` for each of ``new``; OWN for weights that only the new script's batches have.

    Raises:
        BridgeError: A tensor has no counterpart.

    Example:
        >>> old = [Leaf("features/x", "float32", 2), Leaf("labels", "int64", 1)]
        >>> pair(old, [Leaf("features", "float32", 2), Leaf("labels", "int64", 1)], print)
        features/x -> features by type and rank
        [0, 1]
    """
    chosen: dict[int, int] = {}
    surely: tuple[_Way, ...] = (
        ("name", lambda here, there: here.path == there.path),
        ("end of name", lambda here, there: _root(here) == _root(there) and _last(here) == _last(there)),
        ("name of labels", lambda here, there: _last(there).lower().startswith(_LABELS) and _are_labels(here, there, new)),
        (
            "type and rank",
            lambda here, there: _root(here) == _root(there) and (here.dtype, here.rank) == (there.dtype, there.rank),
        ),
    )
    perhaps: tuple[_Way, ...] = (
        (_ORDER, lambda here, there: _root(here) == _root(there) and (here.dtype == "string") == (there.dtype == "string")),
        ("name of weights", lambda here, there: there.path == WEIGHTS and "weight" in _last(here).lower()),
        ("type and rank, as labels", lambda here, there: _are_labels(here, there, new)),
    )
    _choose(surely, old, new, chosen, say)
    by_values = _by_values(old, new, chosen, recorded, own)
    for place, number in by_values.items():
        say(f"{old[number].path} -> {new[place].path} by the values of the new script's own batch")
    chosen |= by_values
    _choose(perhaps, old, new, chosen, say)
    is_in_order = [leaf.dtype for leaf in old] == [leaf.dtype for leaf in new]
    if len(chosen) < len(new) and is_in_order and all(place == number for place, number in by_values.items()):
        say(f"{', '.join(leaf.path for leaf in old)} are taken in this order: {_UNSURE}")  # a loop's own tuple
        return list(range(len(new)))
    alone = [place for place, leaf in enumerate(new) if leaf.path == WEIGHTS and leaf.dtype.startswith("float")]
    chosen |= {place: OWN for place in alone if place not in chosen}
    if len(chosen) < len(new):
        raise misfit(old, new)
    return [chosen[place] for place in range(len(new))]


def _choose(ways: Sequence[_Way], old: Sequence[Leaf], new: Sequence[Leaf], chosen: dict[int, int], say: Say) -> None:
    """Adds the recorded tensors that descriptions single out to those that are chosen."""
    for how, fits in ways:
        free = {
            place: [i for i, leaf in enumerate(old) if i not in chosen.values() and fits(leaf, there)]
            for place, there in enumerate(new)
            if place not in chosen
        }
        for place, found in free.items():
            left = [i for i in found if i not in chosen.values()]
            rivals = sum(bool(set(found) & set(other)) for other in free.values())
            if left and (
                (len(found) == 1 and rivals == 1) or how in {"name", "end of name"} or (how == _ORDER and len(found) == rivals)
            ):
                chosen[place] = left[0]
                if how != "name":
                    unsure = f": {_UNSURE}" if how == _ORDER and rivals > 1 else ""
                    say(f"{old[left[0]].path} -> {new[place].path} by {how}{unsure}")


def _by_values(
    old: Sequence[Leaf], new: Sequence[Leaf], chosen: Mapping[int, int], recorded: Sequence[Any], own: Sequence[Any]
) -> dict[int, int]:
    """Returns the recorded tensors that are clearly more like the new script's own ones than any other choice is."""
    likeness: dict[int, dict[int, float]] = {}
    for place in (place for place in range(len(own)) if place not in chosen):
        free = [i for i in range(len(recorded)) if i not in chosen.values() and _has_shape(recorded[i], new[place])]
        every = {i: _likeness(recorded[i], own[place]) for i in free}
        found = {i: value for i, value in every.items() if value == EQUAL or _may_be(old[i], new[place])}
        if len(found) > 1 or EQUAL in found.values():  # a single one is no choice
            likeness[place] = found
    left = sorted({i for found in likeness.values() for i in found})
    if not likeness or math.perm(len(left), len(likeness)) > MOST_CHOICES:
        return {}
    totals = {
        choice: sum(found[i] for i, found in zip(choice, likeness.values(), strict=True))
        for choice in itertools.permutations(left, len(likeness))
        if all(i in found for i, found in zip(choice, likeness.values(), strict=True))
    }
    elements = 2 * min(own[place].size for place in likeness)
    least = max(totals.values(), default=0.0) - max(CLEAR, CHANCE / math.sqrt(max(elements, 1)))
    near = [choice for choice, total in totals.items() if total >= least]
    ways = zip(likeness, zip(*near, strict=True), strict=False)
    return {place: each[0] for place, each in ways if len(set(each)) == 1 and likeness[place][each[0]] >= CLEAR}


def _may_be(here: Leaf, there: Leaf) -> bool:
    """Returns True unless one of two tensors is a feature and the other one is not."""
    return (_root(here) == "features") == (_root(there) == "features")


def _likeness(recorded: Any, own: Any) -> float:
    """Returns EQUAL for equal arrays of several values, else the share of elements that both have, wherever they are."""
    if recorded.dtype.kind != own.dtype.kind and {recorded.dtype.kind, own.dtype.kind} <= set("biuf"):
        recorded, own = recorded.astype(np.float64), own.astype(np.float64)
    if recorded.dtype.kind != own.dtype.kind:  # text is no number
        return 0.0
    here, there = rounded(recorded), rounded(own)
    if np.array_equal(here, there) and here.size and (here != here.flat[0]).any():
        return EQUAL
    (values, counts), (others, more) = (np.unique(side, return_counts=True) for side in (here, there))
    _, places, at = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    return float(np.minimum(counts[places] / max(here.size, 1), more[at] / max(there.size, 1)).sum())


def _are_labels(here: Leaf, there: Leaf, new: Sequence[Leaf]) -> bool:
    """Returns True if a tensor may be the old labels in a batch of the new script that is one dictionary."""
    is_one = all(_root(leaf) == "features" for leaf in new)
    return is_one and _root(here) == "labels" and (here.dtype, here.rank) == (there.dtype, there.rank)


def misfit(old: Sequence[Leaf], new: Sequence[Leaf]) -> BridgeError:
    """Returns the error for batches that cannot be fed to the new script."""
    return BridgeError(
        "The old script's batches do not fit the new script's.",
        expected=", ".join(map(str, new)),
        received=", ".join(map(str, old)),
        fix="Name a function with --adapt module:function; it takes the old features and labels and returns the new batch. "
        "It gets a sparse tensor x in parts: x#0, its indices, x#1, its values, and x#2, its shape.",
    )


def _root(leaf: Leaf) -> str:
    return leaf.path.partition("/")[0].partition("#")[0]


def _last(leaf: Leaf) -> str:
    return leaf.path.rpartition("/")[2]


def adapted(value: Any, leaf: Leaf, say: Say) -> Any:
    """Returns a recorded value with the rank and dtype that the new script expects.

    Args:
        value: Recorded array.
        leaf: Tensor of the new script's batch.
        say: Function that takes a note about each change.
    """
    if leaf.rank is not None and not _has_shape(value, leaf):
        value, change = _in_shape(value, leaf)
        say(f"{leaf.path}: {change}")
    if (value.dtype == object) != (leaf.dtype == "string"):
        raise misfit([_leaf(leaf.path, value)], [leaf])
    if value.dtype != object and tf.as_dtype(value.dtype).name != leaf.dtype:
        if np.issubdtype(value.dtype, np.floating) and "int" in leaf.dtype and not np.array_equal(value, np.trunc(value)):
            raise _fractions(leaf, value)
        say(f"{leaf.path}: {value.dtype} was cast to {leaf.dtype}")
        value = value.astype(tf.as_dtype(leaf.dtype).as_numpy_dtype)
    return value


def _fractions(leaf: Leaf, value: Any) -> BridgeError:
    return BridgeError(
        f"The old script's {leaf.path} has fractions, and the new script expects whole numbers.",
        expected=leaf.dtype,
        received=f"{value.dtype} from {value.min():.6g} to {value.max():.6g}",
        fix="If the new script scales them in its model, name a function with --adapt module:function that undoes the old scaling.",
    )


def _has_shape(value: Any, leaf: Leaf) -> bool:
    sizes = zip(value.shape[1:], leaf.row or (), strict=False)
    return value.ndim == leaf.rank and all(there in (None, here) for here, there in sizes)


def _in_shape(value: Any, leaf: Leaf) -> tuple[Any, str]:
    """Returns a value with the rank that the new script expects, and what was done; the elements of a row keep their order."""
    rank = leaf.rank or 0
    if rank == value.ndim + 1 and leaf.last in (1, None):
        return value[..., None], "a last dimension of 1 was added"
    if value.ndim == rank + 1 and value.shape[-1] == 1:
        return value[..., 0], "the last dimension of 1 was dropped"
    if rank == value.ndim + 1 and leaf.last and np.issubdtype(value.dtype, np.integer):
        return np.eye(leaf.last)[value], "integers were made one-hot"
    if value.ndim == rank + 1 and _root(leaf) == "labels" and _is_one_hot(value):
        return value.argmax(-1), "one-hot rows were made integers"
    row = leaf.row
    if rank and row is not None and None not in row and value.ndim and is_regrouped(value.shape[1:], row):
        return value.reshape(len(value), *row), f"rows of shape {list(value.shape[1:])} became {list(row)}"
    raise misfit([_leaf(leaf.path, value)], [leaf])


def _is_one_hot(value: Any) -> bool:
    is_binary = value.dtype != object and bool(np.isin(value, (0, 1)).all())
    return is_binary and value.shape[-1] > 1 and bool((value.sum(-1) == 1).all())


def is_regrouped(here: Sequence[int], there: Sequence[int | None]) -> bool:
    """Returns True if one shape only splits dimensions of the other.

    Args:
        here: Shape.
        there: Shape.

    Example:
        >>> is_regrouped((784,), (28, 28, 1)), is_regrouped((2, 3), (3, 2))
        (True, False)
    """
    ends = [set(np.cumprod([size for size in shape if size != 1], dtype=np.int64).tolist()) for shape in (here, there)]
    return max(ends[0], default=1) == max(ends[1], default=1) and (ends[0] <= ends[1] or ends[1] <= ends[0])


def _say_nothing(_: str) -> None:
    """Leaves out the notes of a pairing that the new script's own batch does not decide yet."""


class Feeder:
    """Turns recorded batches into batches of the new script.

    Args:
        adapt: ``module:function`` of the user, or "".
        say: Function that takes notes.
    """

    def __init__(self, adapt: str, say: Say) -> None:
        self._adapt, self._say = adapt, say
        self._pairs: dict[tuple[Any, ...], list[int]] = {}
        self._weights: dict[bytes, float] = {}  # of each label, in the new script's own batches

    def batch(self, values: Sequence[Any], old: Sequence[Leaf], spec: Any, has_labels: bool, own: Any = None) -> Any:
        """Returns a recorded batch in the structure of the new script.

        Args:
            values: Recorded arrays.
            old: Description of the arrays.
            spec: Structure of TensorSpecs of the new script's batch.
            has_labels: True if the structure has labels.
            own: The new script's own batch, for what names do not decide and for weights that no recorded tensor has; None if neither
                matters.

        Raises:
            BridgeError: They do not fit.
        """
        if self._adapt:
            return self._by_user(values, old)
        new = leaves_of(spec, has_labels)
        key = (tuple(map(str, old)), tuple(map(str, new)))  # an evaluation's batches are paired as those of the training
        if key not in self._pairs and own is not None:
            arrays = [np.asarray(value) for value in tf.nest.flatten(own, expand_composites=True)]
            self._pairs[key] = pair(old, new, self._say, values, arrays)
        places = self._pairs[key] if key in self._pairs else pair(old, new, _say_nothing)
        found = [adapted(values[i], leaf, self._say) if i != OWN else None for i, leaf in zip(places, new, strict=True)]
        if OWN in places:
            found[places.index(OWN)] = self._own_weights(found, new, own).astype(new[places.index(OWN)].dtype)
        return tf.nest.pack_sequence_as(spec, found, expand_composites=True)

    def _own_weights(self, found: Sequence[Any], new: Sequence[Leaf], own: Any) -> Any:
        """Returns the new script's own weights of recorded rows: of equal rows, those of each label, or one for all rows.

        Raises:
            BridgeError: They are none of these.
        """
        others = [number for number, value in enumerate(found) if value is not None]
        labels = next((found[number] for number in others if _root(new[number]) == "labels"), found[others[0]])
        if own is None:
            return np.ones(len(labels))
        arrays = [np.asarray(value) for value in tf.nest.flatten(own, expand_composites=True)]
        weights = next(array for array, leaf in zip(arrays, new, strict=True) if leaf.path == WEIGHTS)
        own_labels = next((arrays[number] for number in others if _root(new[number]) == "labels"), arrays[others[0]])
        known = {row.tobytes(): weight for row, weight in zip(own_labels, weights, strict=True)}
        is_of_label = all(np.array_equal(known[row.tobytes()], weight) for row, weight in zip(own_labels, weights, strict=True))
        self._weights |= known
        self._say("The old script's batches have no weights; the new script's own are used.")
        if all(np.array_equal(arrays[number], found[number]) for number in others):
            return weights
        if (weights == weights[:1]).all():
            return np.repeat(weights[:1], len(labels), 0)
        if is_of_label and all(row.tobytes() in self._weights for row in labels):
            return np.stack([self._weights[row.tobytes()] for row in labels])
        raise BridgeError(
            "The new script's batches have weights that belong to its own rows, and the old script's batches have none.",
            expected="one weight for all rows or for each label, or the old script's rows in its order",
            received=f"weights of shape {list(weights.shape)} that differ from row to row",
            fix="Name a function with --adapt module:function; it takes the old features and labels and returns the new batch.",
        )

    def _by_user(self, values: Sequence[Any], old: Sequence[Leaf]) -> Any:
        module, colon, name = self._adapt.partition(":")
        if not colon:
            raise BridgeError("--adapt needs a function.", expected="module:function", received=self._adapt)
        batch: dict[str, Any] = {}
        for leaf, value in zip(old, values, strict=True):
            *parents, last = leaf.path.split("/")
            inner = batch
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = value
        self._say(f"{self._adapt} adapts each batch")
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise BridgeError(
                "The function of --adapt cannot be imported.",
                expected="module:function, the module beside the new script or in PYTHONPATH",
                received=f"{self._adapt} ({error})",
                fix="Put the module beside the new script, or correct the name.",
            ) from error
        return function(batch["features"], batch.get("labels"))
