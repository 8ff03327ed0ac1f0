"""Compares the variables of two checkpoints, one at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from estimator_bridge.compat.checkpoint import read_index
from estimator_bridge.compat.checkpoint.format import dtypes
from estimator_bridge.compat.checkpoint.inspection import difference
from estimator_bridge.compat.checkpoint.reading.index import Index
from estimator_bridge.compat.checkpoint.reading.values import read_strings, stream
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.report.spelling import first_three
from estimator_bridge.parity.result import ParityFinding, Thresholds, VariableDiff

# An update is a difference of float32 values: it is known to their rounding, and to this share of its own size.
ROUNDING = 4e-7
SHARE = 1e-3


def compare_values(legacy: str, modern: str) -> Iterator[VariableDiff]:
    """Compares each variable of two checkpoints.

    Args:
        legacy, modern: Prefixes of the checkpoints.

    Yields:
        One ``VariableDiff`` for each name in either, sorted by name.
    """
    old, new = read_index(legacy), read_index(modern)
    for name in sorted(old.entries.keys() | new.entries.keys()):
        shapes = [index.entries[name].shape for index in (old, new) if name in index.entries]
        if len(shapes) == 1:
            yield VariableDiff(name, shapes[0], None, f"only on the {'legacy' if name in old.entries else 'modern'} side")
        elif shapes[0] != shapes[1]:
            yield VariableDiff(name, shapes[0], None, f"shape {list(shapes[1])} on the modern side")
        else:
            value = read_value(old, name)
            yield VariableDiff(name, shapes[0], max_abs_diff(value, read_value(new, name)), largest=_largest(value))


def max_abs_diff(legacy: Any, modern: Any) -> float:
    """Returns the largest absolute difference; infinity if only one side is NaN, or if values that are no numbers differ.

    Example:
        >>> import numpy as np
        >>> max_abs_diff(np.array([1.0, 2.0]), np.array([1.0, 2.5]))
        0.5
    """
    if not all(np.issubdtype(side.dtype, np.number) for side in (legacy, modern)):
        return 0.0 if np.array_equal(legacy, modern) else float("inf")
    return difference.max_abs_diff(legacy, modern)


def rounded(array: Any) -> Any:
    """Returns an array with about three digits of each float, so that rounding seldom makes rows unequal.

    Example:
        >>> import numpy as np
        >>> rounded(np.array([0.1, 0.1000001, 0.102])).tolist()
        [102.375, 102.375, 104.5]
    """
    if not np.issubdtype(array.dtype, np.floating):
        return array
    mantissa, exponent = np.frexp(array)
    return np.ldexp(np.round(mantissa * 1024), exponent) + 0.0  # -0.0 is 0.0


def equal_arrays(legacy: Any, modern: Any, thresholds: Thresholds) -> bool:
    """Returns True if two arrays are equal: floats within the thresholds, others exactly."""
    if not (np.issubdtype(legacy.dtype, np.floating) and np.issubdtype(modern.dtype, np.number)):
        return bool(np.array_equal(legacy, modern))
    close = legacy.shape == modern.shape and np.allclose(legacy, modern, thresholds.rel, thresholds.abs, equal_nan=True)
    return bool(close)


def initial_values(legacy: str, modern: str, step: int, trained: Thresholds | None = None) -> Iterator[ParityFinding]:
    """Yields one finding if training does not start from the same values.

    Args:
        legacy, modern: Prefixes of the checkpoints with the values that a training starts from.
        step: Global step of these values.
        trained: Largest differences that count as equal, if an earlier training ended with these values.
    """
    if not _exists(legacy) or not _exists(modern):  # a call that trained nothing
        return
    outside = [diff for diff in compare_values(legacy, modern) if not _starts_alike(diff, trained)]
    if outside:
        names = [f"{diff.name} ({diff.note or f'{diff.max_abs_diff:.3g}'})" for diff in outside]
        yield ParityFinding("initial values", f"The initial values differ: {first_three(names)}.", step)


def _starts_alike(diff: VariableDiff, trained: Thresholds | None) -> bool:
    if diff.max_abs_diff is None:
        return False
    return trained.accept_variable(diff.max_abs_diff, diff.largest) if trained else diff.max_abs_diff <= ROUNDING


def first_updates(
    legacy: Trace, modern: Trace, call: str, step: int, sides: tuple[str, str] = ("legacy", "modern")
) -> Iterator[ParityFinding]:
    """Yields one finding if the first step changes the variables differently, with the detail that says most about the cause.

    Args:
        legacy, modern: Traces of the two sides.
        call: Name of the training call.
        step: First step of the call.
        sides: Names of the two sides.
    """
    compared = list(_updates(legacy, modern, call))
    outside = [
        (name, old, new)
        for name, old, new, value in compared
        if not _difference(old, new) <= ROUNDING * max(1.0, value) + SHARE * float(np.max(np.abs(old)))
    ]
    if not outside:
        return
    still = [name for name, old, new in outside if not new.any() and old.any()]
    if still:
        yield ParityFinding("first update", f"The {sides[1]} side does not update {first_three(still)}.", step)
        return
    ratios = [f"{name} x{float(np.vdot(old, new) / np.vdot(old, old)):.4g}" for name, old, new in outside if old.any()]
    count = f"{len(outside)} of {len(compared)}"
    message = f"The first update of {count} variables differs; {sides[1]} / {sides[0]}: {first_three(ratios)}."
    yield ParityFinding("first update", message, step)


def first_update_difference(legacy: Trace, modern: Trace, call: str) -> float | None:
    """Returns by how much the updates of the first step differ, beyond the rounding of float32, as a share of the largest update.

    Args:
        legacy, modern: Traces of the two sides.
        call: Name of the training call.

    Returns:
        The largest of all variables and slots; infinity if only one side changes one, None if nothing was recorded.
    """
    shares = []
    for _, old, new, value in _updates(legacy, modern, call):
        size, beyond = float(np.max(np.abs(old))), max(0.0, _difference(old, new) - ROUNDING * value)
        shares.append(beyond / size if size else float("inf") if beyond else 0.0)
    return max(shares, default=None)


def _difference(old: Any, new: Any) -> float:
    """Returns the largest difference of two updates; infinity if only one is a number."""
    if np.array_equal(old, new, equal_nan=True):
        return 0.0
    largest = float(np.max(np.abs(new - old)))
    return largest if np.isfinite(largest) else float("inf")


def _updates(legacy: Trace, modern: Trace, call: str) -> Iterator[tuple[str, Any, Any, float]]:
    """Yields (name, legacy update, modern update, largest value after it) for each float variable, weights before slots."""
    prefixes = [trace.values(call, moment) for trace in (legacy, modern) for moment in ("initial", "first")]
    if not all(map(_exists, prefixes)):
        return
    indices = [read_index(prefix) for prefix in prefixes]
    shapes = [{name: entry.shape for name, entry in index.entries.items()} for index in indices]
    names = [name for name in shapes[0] if all(shape.get(name) == shapes[0][name] for shape in shapes)]
    for name in sorted(names, key=lambda name: (any(name.startswith(f"{other}/") for other in names), name)):
        before, after, new_before, new_after = (read_value(index, name) for index in indices)
        if before.size and np.issubdtype(before.dtype, np.floating):
            update, new_update = after.astype(np.float64) - before, new_after.astype(np.float64) - new_before
            yield name, update, new_update, float(np.max(np.abs(after)))


def _largest(value: Any) -> float:
    finite = value[np.isfinite(value)] if np.issubdtype(value.dtype, np.inexact) else np.zeros(0)
    return float(np.max(np.abs(finite))) if finite.size else 1.0


def read_value(index: Index, name: str) -> Any:
    """Returns the value of a variable, read without TensorFlow."""
    entry = index.entries[name]
    if dtypes.dtype(entry.dtype).size is None:
        return np.array(read_strings(index, entry, name), dtype=object).reshape(entry.shape)
    return dtypes.to_numpy(b"".join(stream(index, name)), entry.dtype).reshape(entry.shape)


def _exists(prefix: str) -> bool:
    return Path(f"{prefix}.index").exists()
