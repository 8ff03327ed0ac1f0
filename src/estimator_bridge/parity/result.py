"""The result of a comparison: plain data for the terminal, the HTML page and scripts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from estimator_bridge.parity.causes.cause import Cause

Outcome = Literal["equivalent", "not equivalent", "not decided"]
Verdict = Literal["equal", "different", "not comparable", "equivalent", "not equivalent", "not decided"]
Level = Literal["initial values", "batch", "first update", "loss", "metric", "variable", "prediction", "export", "calls"]
WindowVerdict = Literal["within", "rounding", "outside"]
EXIT_CODES: dict[Verdict, int] = {
    "equal": 0,
    "different": 1,
    "not comparable": 2,
    "equivalent": 0,
    "not equivalent": 1,
    "not decided": 2,
}


FIRST_LOSSES, FIRST_LOSSES_DIFFER = 5, 1e-6
"""Number of losses, and their largest rel_diff, that tell a sum in another order from another computation: rounding grows from there."""


@dataclasses.dataclass(frozen=True)
class Thresholds:
    """The largest differences that still count as equal.

    A pair of values is equal when its rel_diff OR its abs_diff is within the threshold. Losses and metrics share the first two;
    ``variable_abs`` is for the values of the final checkpoints: for variables whose values stay within 1, and in proportion to the
    largest value for others (an optimizer's accumulators grow into the hundreds, where float32 rounds more coarsely).
    """

    rel: float = 1e-5
    abs: float = 2e-6
    variable_abs: float = 1e-4

    def accept(self, legacy: float, modern: float) -> bool:
        """Returns True if the pair is equal; NaN equals only NaN.

        Example:
            >>> Thresholds().accept(1.0, 1.000001), Thresholds().accept(1.0, 1.1)
            (True, False)
        """
        both_nan = math.isnan(legacy) and math.isnan(modern)
        return both_nan or abs_diff(legacy, modern) <= self.abs or rel_diff(legacy, modern) <= self.rel

    def accept_variable(self, max_abs_diff: float, largest: float = 1.0) -> bool:
        """Returns True if a variable with values up to ``largest`` is equal on both sides.

        Example:
            >>> Thresholds().accept_variable(1e-3), Thresholds().accept_variable(1e-3, largest=500.0)
            (False, True)
        """
        return max_abs_diff <= self.variable_abs * max(1.0, largest)


def abs_diff(legacy: float, modern: float) -> float:
    """Returns ``|legacy - modern|``; 0 for equal infinities."""
    return 0.0 if legacy == modern else abs(legacy - modern)


def rel_diff(legacy: float, modern: float) -> float:
    """Returns ``|legacy - modern| / max(|legacy|, |modern|)``; 0 if both are 0."""
    if math.isnan(legacy) or math.isnan(modern):
        return math.nan
    largest = max(abs(legacy), abs(modern))
    return abs_diff(legacy, modern) / largest if largest else 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class LossPoint:
    """The training loss of one global step on both sides."""

    step: int
    legacy: float
    modern: float


@dataclasses.dataclass(frozen=True)
class MetricPair:
    """One metric of one evaluation; ``evaluation`` is its name ("" for the unnamed one)."""

    evaluation: str
    step: int
    metric: str
    legacy: float
    modern: float


@dataclasses.dataclass(frozen=True)
class VariableDiff:
    """One checkpointed variable after the last step; ``max_abs_diff`` is None if only one side has it.

    ``largest`` is the largest absolute value on the legacy side.
    """

    name: str
    shape: tuple[int, ...]
    max_abs_diff: float | None
    note: str = ""
    largest: float = 1.0


@dataclasses.dataclass(frozen=True)
class PredictionGroup:
    """One output of one predict call; ``max_abs_diff`` is None if only one side has it, or if both cannot be subtracted.

    It is infinity for strings that differ.
    """

    call: str
    name: str
    is_equal: bool
    max_abs_diff: float | None = None


@dataclasses.dataclass(frozen=True)
class MetricEquivalence:
    """The final values of one metric over several seeds, and what two one-sided t-tests say about them.

    ``legacy`` and ``modern`` have one value a seed. ``difference`` is the mean of modern - legacy, ``low`` and ``high`` are its
    confidence interval, and ``margin`` is the largest difference that counts as equivalent, all in the metric's unit. ``p_value`` is
    the larger one of the two tests.
    """

    evaluation: str
    metric: str
    legacy: tuple[float, ...]
    modern: tuple[float, ...]
    difference: float
    low: float
    high: float
    margin: float
    p_value: float
    outcome: Outcome


@dataclasses.dataclass(frozen=True)
class ReferenceValues:
    """The values of the script's original TensorFlow 1, beside those of the result in their order.

    ``losses`` and ``metrics`` are values, ``variables`` and ``predictions`` the larger of both sides' largest absolute differences from
    the reference; None where the reference has no counterpart. ``tensorflow`` and ``python`` are its versions.
    """

    tensorflow: str
    python: str
    losses: tuple[float | None, ...] = ()
    metrics: tuple[float | None, ...] = ()
    variables: tuple[float | None, ...] = ()
    predictions: tuple[float | None, ...] = ()


@dataclasses.dataclass(frozen=True)
class NoiseFloor:
    """The absolute differences between two runs of one side, beside the values of the result in their order.

    A value is None if the second run has no counterpart, or if it was not compared. ``side`` is the side's name.
    """

    side: str
    losses: tuple[float | None, ...] = ()
    metrics: tuple[float | None, ...] = ()
    variables: tuple[float | None, ...] = ()
    predictions: tuple[float | None, ...] = ()


@dataclasses.dataclass(frozen=True)
class ParityFinding:
    """A place where the two sides differ."""

    level: Level
    message: str
    step: int | None = None


@dataclasses.dataclass(frozen=True)
class GradientPair:
    """The gradients of one variable at the first step, which both sides take from the same values.

    ``old`` and ``new`` are largest absolute values; ``ratio`` is the factor new / old that fits all elements best.
    """

    name: str
    shape: tuple[int, ...]
    old: float
    new: float
    ratio: float
    differs: bool


@dataclasses.dataclass(frozen=True, slots=True)
class AnchorWindow:
    """The steps after an anchor, up to the next one: both sides begin them with the old side's values.

    ``anchor`` is the step of the anchor and ``steps`` the number of steps after it. ``loss_rel_diff`` is the largest rel_diff of their
    losses. ``variable_rel_diff`` is the largest difference of a variable after the last of them, as a share of its largest value, and
    ``variable`` is its name; None and "" if no anchor follows. A window is "outside" if it has a finding, or an update of the first steps
    that differs. One of "rounding" has losses outside that rounding explains.
    """

    anchor: int
    steps: int
    loss_rel_diff: float
    variable_rel_diff: float | None
    variable: str
    verdict: WindowVerdict


@dataclasses.dataclass(frozen=True)
class ParityResult:
    """The whole outcome of ``estimator-bridge compare``.

    ``findings`` is empty exactly if the verdict is "equal" or "equivalent"; findings are in the order of training, so the first is the
    cause. ``notes`` says what made the sides comparable, and what is approximate. ``environment`` holds versions, date, host and commit;
    ``seconds`` the wall time of each side, ``recorded`` the bytes of what they recorded. ``new_side`` is "new" for a rewritten script, whose values are those named ``modern``.
    ``noise`` is there if a side ran twice, ``equivalence`` if both sides trained freely with several seeds, ``reference`` if the original
    TensorFlow 1 was recorded. ``cause`` is the first cause of a difference from a rewrite, if a rule names one; ``not_compared`` names
    what the new script does not have, or the comparison does not reach; ``anchors`` are the steps after which a rewrite gets the old
    side's values, ``windows`` the steps between them, and ``gradients`` those of its first step. ``reason`` says why sides that differ are "not comparable".
    ``first_update`` is, for a plan, the largest difference of an update of the first step, as a share of it and beyond rounding.
    """

    command: tuple[str, ...]
    mode: Literal["replay", "free-run", "seeds"]
    verdict: Verdict
    thresholds: Thresholds
    losses: tuple[LossPoint, ...] = ()
    metrics: tuple[MetricPair, ...] = ()
    variables: tuple[VariableDiff, ...] = ()
    findings: tuple[ParityFinding, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    recorded: int = 0
    new_side: Literal["modern", "new"] = "modern"
    predictions: tuple[PredictionGroup, ...] = ()
    noise: NoiseFloor | None = None
    equivalence: tuple[MetricEquivalence, ...] = ()
    reference: ReferenceValues | None = None
    cause: Cause | None = None
    not_compared: tuple[str, ...] = ()
    anchors: tuple[int, ...] = ()
    windows: tuple[AnchorWindow, ...] = ()
    gradients: tuple[GradientPair, ...] = ()
    reason: str = ""
    first_update: float | None = None

    @property
    def sides(self) -> tuple[str, str]:
        """The names of both sides for readers."""
        return ("old", "new") if self.new_side == "new" else ("legacy", "modern")

    @property
    def exit_code(self) -> int:
        """The exit code: 0 equal or equivalent, 1 different or not equivalent, 2 not comparable or not decided."""
        return EXIT_CODES[self.verdict]

    @property
    def level(self) -> str:
        """Level of equality of both sides, for the result of a plan; each level says more than those after it.

        Example:
            >>> ParityResult((), "replay", "equal", Thresholds(), (LossPoint(1, 2.0, 2.0),)).level
            'bit-identical'
        """
        differences = [
            *(abs_diff(point.legacy, point.modern) for point in self.losses),
            *(abs_diff(pair.legacy, pair.modern) for pair in self.metrics),
            *(one.max_abs_diff is None or one.max_abs_diff for one in self.variables),
            *(one.max_abs_diff if one.max_abs_diff is not None else not one.is_equal for one in self.predictions),
        ]
        if differences and not any(differences):
            return "bit-identical"
        if self.losses and all(rel_diff(one.legacy, one.modern) <= FIRST_LOSSES_DIFFER for one in self.losses[:FIRST_LOSSES]):
            is_updated = self.first_update is not None and self.first_update <= FIRST_LOSSES_DIFFER
            return f"{FIRST_LOSSES_DIFFER:g} on the first {FIRST_LOSSES} losses" + " and the first update" * is_updated
        return "within the thresholds" if self.verdict == "equal" else "none"

    def as_dict(self) -> dict[str, Any]:
        """The content of report.json."""
        return {"generator": "estimator-bridge"} | dataclasses.asdict(self) | {"exit_code": self.exit_code}
