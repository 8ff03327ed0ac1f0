"""Numbers of the first steps: what one variable's gradients or updates have in common on both sides, and where the sides part."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.evidence import Evidence, StepEvidence

NOISE = 1e-5
"""A gradient below this share of the largest one is rounding, e.g. that of a bias before batch norm."""
_COARSER, _UNRELATED = 10.0, 0.3
_ROUNDING, _SHARE = 4e-7, 1e-3  # an update is known to the rounding of float32 values, and to this share of its own size
_GRADIENT, _LOSS, _LOSS_FLOOR = 1e-4, 1e-5, 2e-6
_CANCELLED, _IN_PLACES = 2e-6, 3e-5
"""A gradient is a sum over rows that may cancel out: it is known to this share of the largest gradient. That of a convolution's kernel is one over
places, too: it is known to this share of its bias's gradient, which cancels out less."""
_VISIBLE = 0.02
UNEXPLAINED = 0.1
"""Largest share of a difference that an explanation may leave over."""
Rule = Callable[[Evidence], Iterator[Cause]]


@dataclasses.dataclass(frozen=True)
class Fit:
    """The gradient or the update of one variable on both sides.

    An explanation is a number and its misfit: the share of the difference (for factors, of the smaller one of difference and new
    value), in the Euclidean norm, that it leaves over.

    Attributes:
        name: Name of the variable.
        shape: Shape of the variable.
        old, new: Largest absolute values.
        differs: True if they differ by more than rounding ever explains.
        is_clear: True if they differ by more than a thousandth.
        is_visible: True if they differ by more than the usual rounding, which a simple explanation confirms.
        ratio: Factor r of new = r * old, and its misfit.
        l2: Coefficient c of new = old + c * value, and its misfit.
        l1: Coefficient c of new = old + c * sign(value), and its misfit.
        scale: Factor a of new = a * old + b * value, and its misfit.
    """

    name: str
    shape: tuple[int, ...]
    old: float
    new: float
    differs: bool
    is_clear: bool
    is_visible: bool
    ratio: tuple[float, float]
    l2: tuple[float, float]
    l1: tuple[float, float]
    scale: tuple[float, float]

    @property
    def spelled(self) -> str:
        """The name with the factor, which is not said where it is 1: then single elements differ."""
        factor = f"{self.ratio[0] + 0.0:.4g}"
        return f"{self.name} x{factor}" if factor != "1" else f"{self.name} (single elements)"

    @property
    def penalty(self) -> str:
        """The penalty that explains the difference, "L2" or "L1"; "" for none."""
        if self.l2[1] < UNEXPLAINED and self.l2[1] <= self.l1[1]:
            return "L2"
        return "L1" if self.l1[1] < UNEXPLAINED else ""

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))


def _fit(name: str, shape: tuple[int, ...], old: Any, new: Any, value: Any, tolerance: float) -> Fit:
    old, new, value = (np.asarray(array, np.float64).ravel() for array in (old, new, value))
    gap = new - old
    whole = float(np.linalg.norm(gap))
    part = min(whole, float(np.linalg.norm(new)))

    def explain(size: float, target: Any, *columns: Any) -> tuple[float, float]:
        matrix = np.stack(columns, 1)
        if not matrix.any() or not np.isfinite(matrix).all() or not np.isfinite(target).all():
            return 0.0, 1.0
        found = np.linalg.lstsq(matrix, target, rcond=None)[0]
        return float(found[0]), float(np.linalg.norm(target - matrix @ found)) / max(size, 1e-300)

    return Fit(
        name,
        shape,
        _size(old),
        _size(new),
        not _size(gap) <= tolerance,
        not _size(gap) <= 1e-3 * max(_size(old), _size(new)),
        not _size(gap) <= _VISIBLE * tolerance,
        explain(part, new, old),
        explain(whole, gap, value),
        explain(whole, gap, np.sign(value)),
        explain(part, new, old, value) if old.size > 2 else explain(part, new, old),
    )


def _size(value: Any) -> float:
    return float(np.max(np.abs(value), initial=0.0))


def _largest(values: Mapping[str, Any]) -> float:
    return max(map(_size, values.values()), default=0.0)


def noise(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Returns the variables whose gradient is rounding on both sides.

    Sums over many rows and places round more coarsely. So gradients that are somewhat larger are rounding, too, if they have nothing to do
    with each other.
    """
    limit = NOISE * max(_largest(old), _largest(new))
    sizes = {name: max(_size(old[name]), _size(new[name])) for name in old if name in new}
    return {
        name
        for name, size in sizes.items()
        if 0 < size <= limit or (size <= _COARSER * limit and _are_unrelated(old[name], new[name]))
    }


def rounding_alone(evidence: Evidence) -> set[str]:
    """Returns the variables whose gradients are rounding in one of the first steps: they are so by the model, as before batch norm."""
    pairs = zip(evidence.old.steps, evidence.new.steps, strict=False)
    return set().union(*(_noise_of_step(here, there) for here, there in pairs))


@functools.lru_cache(maxsize=32)
def _noise_of_step(old: StepEvidence, new: StepEvidence) -> frozenset[str]:
    """Returns ``noise`` of a step, whose gradients are read from files."""
    return frozenset(noise(old.gradients(), new.gradients()))


def _are_unrelated(old: Any, new: Any) -> bool:
    """Returns True if no factor makes one of two arrays the other, as far as that can be seen."""
    if np.shape(old) != np.shape(new):
        return False
    here, there = (np.asarray(side, np.float64).ravel() for side in (old, new))
    factor = float(here @ there) / max(float(here @ here), 1e-300)
    return bool(np.linalg.norm(there - factor * here) > _UNRELATED * np.linalg.norm(there))


@functools.lru_cache(maxsize=32)
def gradient_fits(old: StepEvidence, new: StepEvidence, applied: bool = False) -> tuple[Fit, ...]:
    """Compares the gradients of a step, without those that are rounding.

    Args:
        old, new: A step of both sides.
        applied: True for those that the optimizers were given, e.g. after clipping.

    Returns:
        One fit for each variable with gradients on both sides, in the old side's order.
    """
    here, there = (side.applied() if applied else side.gradients() for side in (old, new))
    values, ignored = old.before(), noise(here, there)
    top = max(_largest(here), _largest(there))
    fits = []
    for name, gradient in here.items():
        if name in there and name not in ignored and np.shape(gradient) == np.shape(there[name]):
            value = values.get(name, np.zeros_like(gradient))
            value = value if np.shape(value) == np.shape(gradient) else np.zeros_like(gradient)
            of_bias = _of_bias(name, here) if np.ndim(gradient) > 3 else 0.0
            tolerance = _GRADIENT * max(_size(gradient), _size(there[name])) + max(_CANCELLED * top, _IN_PLACES * of_bias)
            fits.append(_fit(name, np.shape(gradient), gradient, there[name], value, tolerance))
    return tuple(fits)


@functools.lru_cache(maxsize=32)
def update_fits(old: StepEvidence, new: StepEvidence) -> tuple[Fit, ...]:
    """Compares what a step added to each variable and slot, except where gradients are rounding.

    Args:
        old, new: A step of both sides.
    """
    before, after, other = old.before(), old.after(), new.after()
    gradients = old.gradients() or old.applied(), new.gradients()
    ignored, limit = noise(*gradients), NOISE * max(map(_largest, gradients))
    equal = {fit.name for fit in gradient_fits(old, new) if not fit.differs}
    fits = []
    for name, value in before.items():
        is_float = np.issubdtype(np.asarray(value).dtype, np.floating)
        if name in ignored or name not in after or name not in other or not np.size(value) or not is_float:
            continue
        kept = _above(limit, gradients[0].get(name), gradients[1].get(name), np.shape(value))
        owner = next((one for one in equal if name == one or name.startswith(f"{one}/")), None)
        if owner is not None and np.shape(gradients[0][owner]) == np.shape(value):
            kept &= _alike(gradients[0][owner], gradients[1][owner])
        here, there = (np.asarray(side[name], np.float64) - value for side in (after, other))
        tolerance = _ROUNDING * max(1.0, _size(after[name])) + _SHARE * _size(here)
        fits.append(_fit(name, np.shape(value), here[kept], there[kept], np.asarray(value)[kept], tolerance))
    return tuple(fits)


def _of_bias(kernel: str, gradients: Mapping[str, Any]) -> float:
    """Returns the size of the gradient of a kernel's bias; 0 without one."""
    scope = kernel.rpartition("/")[0]
    return max(
        (_size(one) for name, one in gradients.items() if name.rpartition("/")[0] == scope and np.ndim(one) == 1), default=0.0
    )


def _alike(old: Any, new: Any) -> Any:
    """Returns a mask of the elements of equal gradients that rounding leaves alike: an optimizer may divide a small one by its size."""
    return np.abs(new - old) <= 0.1 * _SHARE * np.maximum(np.abs(old), np.abs(new))


def _above(limit: float, old: Any, new: Any, shape: tuple[int, ...]) -> Any:
    """Returns a mask of the elements whose gradient is 0, or no rounding, on the sides that have the variable in this shape.

    Recurrent cells have another layout in the old script, so there the new side's gradient decides.
    """
    known = [np.abs(gradient) for gradient in (old, new) if gradient is not None and np.shape(gradient) == shape]
    if not known:
        return np.ones(shape, bool)
    largest = np.maximum.reduce(known)
    return (largest == 0) | (largest > limit)


def known_elements(name: str, shape: tuple[int, ...], steps: Sequence[tuple[StepEvidence, StepEvidence]]) -> Any:
    """Returns a mask of the elements of a variable whose gradients are not rounding alone in steps of both sides.

    Single elements of a bias before an activation and batch norm have such gradients: of channels that the activation never cuts.

    Args:
        name: Name of the variable.
        shape: Its shape.
        steps: Steps of both sides.
    """
    sides = [side.gradients() for step in steps for side in step]
    known = [np.abs(one[name]) for one in sides if name in one and np.shape(one[name]) == shape]
    largest = np.maximum.reduce(known) if known else None
    return _above(NOISE * max(map(_largest, sides), default=0.0), largest, None, shape)


class Stage(enum.IntEnum):
    """The stage at which the two sides part, in the order of a step."""

    LOSS = 1
    GRADIENT = 2
    APPLIED = 3
    UPDATE = 4
    AVERAGE = 5
    LATER = 6
    EVALUATION = 7
    NONE = 8


FORWARD = frozenset([Stage.LOSS, Stage.GRADIENT])
"""Stages of the forward pass and its gradients."""
OPTIMIZER = frozenset([Stage.UPDATE, Stage.LATER])
"""Stages of an update, or after the first steps."""
TRAINING = frozenset(Stage) - {Stage.EVALUATION, Stage.NONE}
"""Stages of a training."""


@dataclasses.dataclass(frozen=True)
class Parting:
    """The place where the sides part.

    Attributes:
        stage: Stage of the step.
        index: Number of the step, from 1; 0 without one.
        step: Global step.
        steps: Pair of both sides' evidence of this step, else of the nearest one of the first steps; empty if there is none.
        fits: The variables that differ there.
    """

    stage: Stage
    index: int
    step: int
    steps: tuple[StepEvidence, ...]
    fits: tuple[Fit, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables that differ."""
        return tuple(fit.name for fit in self.fits)

    @property
    def ratios(self) -> str:
        """New value / old value of the variables that differ, as text."""
        return some([fit.spelled for fit in self.fits])

    def cause(self, name: CauseName, seen: str, change: str, variables: tuple[str, ...] = ()) -> Cause:
        """Returns a cause that shows here first."""
        return Cause(name, seen, change, self.step, variables)


def losses_differ(old: float, new: float) -> bool:
    """Returns True if losses of a step from the same values differ by more than rounding."""
    gap = abs(old - new)
    is_equal = old == new or (math.isnan(old) and math.isnan(new))
    return not (is_equal or gap <= max(_LOSS_FLOOR, _LOSS * max(abs(old), abs(new))))


@functools.lru_cache(maxsize=4)
def parting(evidence: Evidence) -> Parting:
    """Finds where the two sides part.

    Args:
        evidence: Evidence of both sides.
    """
    stage, index, fits = _part(evidence)
    pairs = list(zip(evidence.old.steps, evidence.new.steps, strict=False))
    steps = pairs[min(max(index, 1), len(pairs)) - 1] if pairs else ()
    return Parting(stage, index, evidence.start + index, steps, fits)


def at(stages: Container[Stage]) -> Callable[[Callable[[Evidence, Parting], Iterator[Cause]]], Rule]:
    """Returns a decorator that makes a rule, which looks only where the sides part at one of the stages.

    Args:
        stages: Stages of the rule.
    """

    def make(find: Callable[[Evidence, Parting], Iterator[Cause]]) -> Rule:
        @functools.wraps(find)
        def rule(evidence: Evidence) -> Iterator[Cause]:
            place = parting(evidence)
            return find(evidence, place) if place.stage in stages else iter(())

        return rule

    return make


def _part(evidence: Evidence) -> tuple[Stage, int, tuple[Fit, ...]]:
    pairs = list(zip(evidence.old.steps, evidence.new.steps, strict=False))
    rounding = rounding_alone(evidence)
    for old, new in pairs:
        gradients, applied = (
            tuple(fit for fit in _differing(gradient_fits(old, new, after)) if fit.name not in rounding)
            for after in (False, True)
        )
        if not any(map(_is_no_rounding, gradients)):  # as that of a bias before batch norm and pooling
            gradients, applied = (), tuple(filter(_is_no_rounding, applied))
        updates = tuple(fit for fit in _differing(update_fits(old, new)) if fit.name not in rounding)
        averages = tuple(fit for fit in updates if fit.name in evidence.old.moving_averages)
        weights = tuple(fit for fit in updates if fit.name not in evidence.slots and fit not in averages)
        if losses_differ(old.loss, new.loss):
            return Stage.LOSS, old.index, gradients
        stages = ((Stage.GRADIENT, gradients), (Stage.APPLIED, applied), (Stage.UPDATE, weights), (Stage.AVERAGE, averages))
        for stage, found in stages:
            if found:
                return stage, old.index, found
    for index, pair in enumerate(zip(evidence.old.losses, evidence.new.losses, strict=False), 1):
        if losses_differ(*pair):
            return Stage.LATER, index, ()
    return Stage.EVALUATION if evidence.metrics or evidence.predictions else Stage.NONE, 0, ()


def _is_no_rounding(fit: Fit) -> bool:
    """Returns True for a gradient that differs by more than a sum of many terms may, or as one with another penalty does."""
    return fit.is_clear or bool(fit.size > 3 and fit.penalty)


def _differing(fits: tuple[Fit, ...]) -> tuple[Fit, ...]:
    return tuple(fit for fit in fits if fit.differs)
