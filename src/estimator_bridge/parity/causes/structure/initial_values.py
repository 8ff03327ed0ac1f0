"""Initial values of the new script's own, which the comparison replaces by the old script's, so that no loss shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.evidence import Evidence

_VALUES, _BLOCKS, _SIZE = 3, 6, 8
"""A variable is constant in blocks with at most so many values in so many blocks, e.g. 1 for the forget gate, and at least this size."""
_MANY = 30
"""Smallest number of random values that have a spread."""
_UNLIKELY = 6.0
"""Standard errors by which spreads and means of random values never differ by chance."""


def read_values(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if variables start with other values than those that the old script does not draw; a forward pass may follow from it."""
    read = [
        name
        for name, pair in _pairs(evidence).items()
        if name in evidence.old.given and not _is_constant(pair[0]) and not _are_near(*pair)
    ]
    if read:
        seen = f"The old script starts {some(read)} with values that it does not draw, as of a file; the new script's own are others."
        change = (
            "Load the same values into these variables of the new script. "
            "Only a table that neither script trains may have its rows in another order."
        )
        yield Cause(CauseName.INITIAL_VALUES, seen, change, 0, tuple(read))


def set_values(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the old script sets variables before its first step, and the new one trains on from its own initial values."""
    left = [
        name
        for name, pair in _pairs(evidence).items()
        if name in evidence.old.set and not _are_near(*pair) and _is_left(evidence, name, pair[1])
    ]
    if left:
        seen = (
            f"The old script gives {some(left)} other values before its first step, by a hook or a function of its Scaffold; "
            "the new script trains on from its own initial ones."
        )
        yield Cause(CauseName.INITIAL_VALUES, seen, "Set these variables in the new script before it trains.", 0, tuple(left))


def _is_left(evidence: Evidence, name: str, own: Any) -> bool:
    """Returns True if a variable of the new script is nearer to its own initial value than to the old script's after the first step."""
    for before, after in zip(evidence.old.steps[:1], evidence.new.steps[:1], strict=False):
        old, new = before.after().get(name), after.after().get(name)
        return old is not None and new is not None and bool(np.linalg.norm(new - own) < np.linalg.norm(new - old))
    return False


def lost_values(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if the new script goes on with another model than before, whose values are not those that its last step left."""
    for step, names in evidence.lost:
        seen = (
            f"The old script goes on with its training after step {step}; the model of the new script begins anew there: "
            f"{some(names)} {'has' if len(names) == 1 else 'have'} other values than the step before left."
        )
        change = "Load the values of the last step, with those of the optimizer, or train on with the same model."
        yield Cause(CauseName.LOST_VALUES, seen, change, step + 1, names)


def initial_values(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause if variables start with different values that both scripts have as constants."""
    different = {name: pair for name, pair in _pairs(evidence).items() if _differ(*pair)}
    if different:
        name, (old, new) = next(iter(different.items()))
        seen = f"{some([*different])}: {name} starts with {_spelled(old)} in the old script, and with {_spelled(new)} in the new one."
        change = "Give the layer the initializer of the old script: bias_initializer, unit_forget_bias, gamma_initializer and the like."
        yield Cause(CauseName.INITIAL_VALUES, seen, change, 0, tuple(different))


def initial_spreads(evidence: Evidence) -> Iterator[str]:
    """Yields a note if random initial values have another mean or spread than the old script's, or only one side's are random."""
    different = {name: pair for name, pair in _pairs(evidence).items() if _spread_otherwise(*pair)}
    if different:
        name, (old, new) = next(iter(different.items()))
        yield (
            f"{some([*different])} start from another distribution: {name} has the mean {np.mean(old):.3g} and the standard deviation "
            f"{np.std(old):.3g} in the old script, {np.mean(new):.3g} and {np.std(new):.3g} in the new one. The comparison gives the old "
            "values to both; a training from the start may need the old initializers."
        )


def _pairs(evidence: Evidence) -> dict[str, tuple[Any, Any]]:
    if evidence.start:  # the old script continued a training, whose values are not initial ones
        return {}
    old, new = evidence.old.initial(), evidence.new.initial()
    both = {name: (np.asarray(old[name]), np.asarray(new[name])) for name in old if name in new and name not in evidence.slots}
    return {
        name: (here, there)
        for name, (here, there) in both.items()
        if here.ndim and here.shape == there.shape and np.issubdtype(here.dtype, np.floating)
    }


def _is_constant(value: Any) -> bool:
    """Returns True for one value, and for a few in blocks; one element may be random unless it is 0 or 1, and signs may be."""
    if value.size == 1:
        return value.item() in (0.0, 1.0)
    values, blocks = len(np.unique(value)), 1 + np.count_nonzero(np.diff(value.ravel()))
    return values == 1 or (values <= _VALUES and blocks <= _BLOCKS and value.size >= _SIZE)


def _differ(old: Any, new: Any) -> bool:
    return _is_constant(old) and _is_constant(new) and not _are_near(old, new)


def _are_near(old: Any, new: Any) -> bool:
    return bool(np.allclose(old, new, rtol=1e-5, atol=1e-7))


def _spread_otherwise(old: Any, new: Any) -> bool:
    if _is_constant(old) or _is_constant(new):
        return _is_constant(old) != _is_constant(new)
    if old.size < _MANY:
        return False
    error = _UNLIKELY / np.sqrt(old.size)
    spreads = np.std(old), np.std(new)
    is_shifted = abs(np.mean(old) - np.mean(new)) > error * np.hypot(*spreads)
    return bool(is_shifted or abs(np.log(spreads[0] / spreads[1])) > error)


def _spelled(value: Any) -> str:
    return " and ".join(f"{one:.6g}" for one in np.unique(value))
