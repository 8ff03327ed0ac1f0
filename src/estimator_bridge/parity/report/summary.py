"""The content of a report: one sentence, a few numbers, and the rows of thousands that are worth showing first."""

import dataclasses
import json
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from estimator_bridge.parity.report import spelling
from estimator_bridge.parity.result import (
    AnchorWindow,
    Level,
    LossPoint,
    MetricEquivalence,
    MetricPair,
    ParityResult,
    PredictionGroup,
    Thresholds,
    VariableDiff,
    abs_diff,
    rel_diff,
)

_WHERE = {
    "initial values": "in their initial values",
    "batch": "in a batch",
    "first update": "at the first update",
    "loss": "in the loss",
    "metric": "in a metric",
    "variable": "in a variable",
    "prediction": "in a prediction",
    "export": "in an export",
    "calls": "in the calls that they make",
}
_VALUES: dict[Level, str] = {"loss": "losses", "metric": "metrics", "variable": "variables", "prediction": "predictions"}
WINDOW_HEADER = ("anchor step", "steps", "max rel_diff of losses", "max rel_diff of variables", "variable", "verdict")
MOST_WINDOWS = 20  # of a report's table; report.json has all
State = Literal["outside", "one-sided", "inside"]


class Gap(NamedTuple):
    """The gap between a pair of values.

    ``share`` is the part of the threshold that the gap uses: the smaller of abs_diff and rel_diff over its threshold, since
    either one suffices; the pair is equal if it is <= 1. Two NaN are equal; if only one side is NaN, all three are NaN.
    """

    abs_diff: float
    rel_diff: float
    share: float

    @property
    def outside(self) -> bool:
        """True if the pair is not equal."""
        return not self.share <= 1


class SpelledPair(NamedTuple):
    """A pair of values and its gap, as the reader sees them."""

    legacy: str
    modern: str
    abs_diff: str
    rel_diff: str
    outside: bool


@dataclasses.dataclass(frozen=True)
class Summary:
    """The ``summary`` of report.json; a field is None if there is nothing to compute it from."""

    num_steps: int
    num_steps_outside: int
    first_step_outside: int | None
    worst_step: int | None
    worst_share: float | None
    max_abs_diff: float | None
    max_abs_diff_step: int | None
    max_rel_diff: float | None
    max_rel_diff_step: int | None
    num_metrics: int
    num_metrics_outside: int
    num_variables: int
    num_variables_outside: int
    num_variables_one_sided: int
    max_variable_abs_diff: float | None


def measure(legacy: float, modern: float, thresholds: Thresholds) -> Gap:
    """Measures the gap between a pair of values.

    Args:
        legacy: Value of the legacy side.
        modern: Value of the modern side.
        thresholds: Largest differences that count as equal.

    Example:
        >>> from estimator_bridge.parity.result import Thresholds
        >>> measure(1.0, 1.0, Thresholds())
        Gap(abs_diff=0.0, rel_diff=0.0, share=0.0)
    """
    if math.isnan(legacy) and math.isnan(modern):
        return Gap(0.0, 0.0, 0.0)
    absolute, relative = abs_diff(legacy, modern), rel_diff(legacy, modern)
    return Gap(absolute, relative, min(_ratio(absolute, thresholds.abs), _ratio(relative, thresholds.rel), key=severity))


def severity(value: float) -> float:
    """Returns a sort key for differences in which NaN is worse than any number.

    Args:
        value: Difference.

    Returns:
        ``value``, or infinity for NaN.

    Example:
        >>> max([0.5, float("nan"), 2.0], key=severity)
        nan
    """
    return math.inf if math.isnan(value) else value


def worst(values: Sequence[float]) -> int:
    """Returns the index of the largest difference, or of the first of several.

    Args:
        values: Differences, at least one.

    Example:
        >>> worst([0.5, 2.0, 1.0])
        1
    """
    return max(range(len(values)), key=lambda index: severity(values[index]))


def loss_gaps(result: ParityResult) -> list[Gap]:
    """Returns the gap of every step.

    Args:
        result: Result of a comparison.

    Returns:
        One gap for each of ``result.losses``.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> loss_gaps(ParityResult((), "replay", "equal", Thresholds()))
        []
    """
    return [measure(point.legacy, point.modern, result.thresholds) for point in result.losses]


def is_identical(result: ParityResult, level: Level) -> bool:
    """Returns True if both sides have the same values, each of them was compared, and every difference is 0.

    Args:
        result: Result of a comparison.
        level: Kind of the values: "loss", "metric", "variable" or "prediction".

    Example:
        >>> from estimator_bridge.parity.result import MetricPair, ParityResult, Thresholds
        >>> run = ParityResult((), "replay", "equal", Thresholds(), metrics=(MetricPair("", 9, "auc", 0.75, 0.75),))
        >>> is_identical(run, "metric"), is_identical(run, "variable")
        (True, False)
    """
    items = getattr(result, _VALUES[level])
    # A value that only one side has is no item: it is a finding.
    is_found = any(finding.level == level for finding in result.findings)
    return bool(items) and not is_found and all(_abs_diff(item) == 0 for item in items)


def _abs_diff(item: LossPoint | MetricPair | VariableDiff | PredictionGroup) -> float | None:
    if isinstance(item, (VariableDiff, PredictionGroup)):
        return item.max_abs_diff
    return measure(item.legacy, item.modern, Thresholds()).abs_diff


def by_rounding(result: ParityResult, outside: int) -> bool:
    """Returns True if values are outside their thresholds, and the verdict puts them all down to rounding.

    Args:
        result: Result of a comparison.
        outside: Number of values outside.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> by_rounding(ParityResult((), "replay", "equal", Thresholds()), 8)
        True
    """
    return outside > 0 and result.verdict == "equal"


def variable_state(variable: VariableDiff, thresholds: Thresholds) -> State:
    """Returns the state of a variable: it differs by more than its threshold, or one side lacks it, or neither.

    Args:
        variable: Compared variable.
        thresholds: Largest differences that count as equal.

    Example:
        >>> from estimator_bridge.parity.result import Thresholds, VariableDiff
        >>> variable_state(VariableDiff("kernel", (2,), 0.5), Thresholds())
        'outside'
    """
    if variable.max_abs_diff is None:
        return "one-sided"
    return "inside" if thresholds.accept_variable(variable.max_abs_diff, variable.largest) else "outside"


def spell_pair(pair: LossPoint | MetricPair, thresholds: Thresholds) -> SpelledPair:
    """Spells a pair of values and its gap.

    Args:
        pair: Losses or metrics.
        thresholds: Largest differences that count as equal.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, Thresholds
        >>> spell_pair(LossPoint(1, 0.5, 0.25), Thresholds())
        SpelledPair(legacy='0.5', modern='0.25', abs_diff='2.50e-1', rel_diff='5.00e-1', outside=True)
    """
    gap = measure(pair.legacy, pair.modern, thresholds)
    values = spelling.number(pair.legacy), spelling.number(pair.modern)
    return SpelledPair(*values, spelling.difference(gap.abs_diff), spelling.difference(gap.rel_diff), gap.outside)


def spell_noise(result: ParityResult) -> Callable[[object], tuple[str, ...]]:
    """Returns a function of a loss, metric, variable or group of predictions that spells the noise beside it.

    Args:
        result: Result of a comparison.

    Returns:
        A function that returns one string, or none if no side ran twice.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, NoiseFloor, ParityResult, Thresholds
        >>> run = ParityResult((), "replay", "equal", Thresholds(), (LossPoint(1, 2.0, 2.5),), noise=NoiseFloor("modern", (0.25,)))
        >>> spell_noise(run)(run.losses[0])
        ('2.50e-1',)
    """
    noise = result.noise
    if noise is None:
        return lambda item: ()
    found: dict[int, float | None] = {}
    for name in ("losses", "metrics", "variables", "predictions"):
        found |= zip(
            map(id, getattr(result, name)), getattr(noise, name), strict=False
        )  # an object of the result is there once
    return lambda item: (spelling.difference(found.get(id(item))),)


def spell_reference(result: ParityResult) -> Callable[[object], tuple[str, ...]]:
    """Returns a function that spells the reference's value of a loss or metric.

    Of a variable or a group of predictions, it spells the largest difference from the reference.

    Args:
        result: Result of a comparison.

    Returns:
        A function that returns one string, or none without a reference.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, ReferenceValues, Thresholds
        >>> values = ReferenceValues("1.15.5", "3.7.16", (2.25,))
        >>> run = ParityResult((), "replay", "equal", Thresholds(), (LossPoint(1, 2.0, 2.5),), reference=values)
        >>> spell_reference(run)(run.losses[0])
        ('2.25',)
    """
    reference = result.reference
    if reference is None:
        return lambda item: ()
    found: dict[int, str] = {}
    values = ("losses", _spell_value), ("metrics", _spell_value)
    differences = ("variables", spelling.difference), ("predictions", spelling.difference)
    for name, spell in (*values, *differences):
        found |= {id(item): spell(value) for item, value in zip(getattr(result, name), getattr(reference, name), strict=False)}
    return lambda item: (found.get(id(item), "-"),)


def _spell_value(value: float | None) -> str:
    return "-" if value is None else spelling.number(value)


def headline(result: ParityResult) -> str:
    """Returns the sentence that goes with the verdict.

    Args:
        result: Result of a comparison.

    Returns:
        One sentence; if the sides differ, it names the step or the level.

    Example:
        >>> from estimator_bridge.parity.result import ParityFinding, ParityResult, Thresholds
        >>> headline(ParityResult((), "replay", "different", Thresholds(), findings=(ParityFinding("loss", "0.5 and 0.6", 2),)))
        'The two sides differ at step 2.'
        >>> headline(ParityResult((), "replay", "different", Thresholds(), findings=(ParityFinding("metric", "0.5 and 0.6"),)))
        'The two sides differ in a metric.'
    """
    if result.verdict == "equal":
        old, new = ("old script", "new script") if result.new_side == "new" else ("legacy path", "modern path")
        if result.reference and result.losses:
            return f"Both paths train as TensorFlow {result.reference.tensorflow} does."
        alone = f" Not compared: {', '.join(result.not_compared)}." if result.not_compared else ""
        if not result.losses:
            return f"Nothing was trained in this comparison; in all else the {new} does what the {old} does.{alone}"
        return f"The {new} trains as the {old} does.{alone}"
    if result.mode == "seeds" and result.equivalence:
        return _seeds_headline(result)
    if result.exit_code == 2:
        return f"The two sides could not be compared. {result.reason}".rstrip()
    if not result.findings:
        return "The two sides differ."
    first = result.cause or result.findings[0]
    # A level that is not in the table yet is still a word that says where.
    level = result.findings[0].level
    where = _WHERE.get(level, f"in: {level}") if first.step is None else f"at step {first.step:,}"
    return f"The two sides differ {where}{f': {result.cause.name.value}' if result.cause else ''}."


def _seeds_headline(result: ParityResult) -> str:
    seeds = spelling.count(len(result.equivalence[0].legacy), "seed")
    outcomes = [test.outcome for test in result.equivalence]
    metrics = spelling.count(len(outcomes), "final metric")
    if result.verdict == "equivalent":
        return f"Over {seeds}, {metrics} of both sides differ by less than the margin."
    if result.verdict == "not equivalent":
        return f"Over {seeds}, {outcomes.count('not equivalent')} of {metrics} differ by more than the margin."
    return f"These {seeds} do not decide whether {metrics} differ by less than the margin."


def spell_equivalence(test: MetricEquivalence) -> tuple[str, ...]:
    """Spells the name, both means, the difference with its confidence interval, the margin and the outcome of a metric.

    Args:
        test: Tested metric.

    Example:
        >>> from estimator_bridge.parity.result import MetricEquivalence
        >>> spell_equivalence(MetricEquivalence("", "auc", (0.5, 0.7), (0.6, 0.7), 0.05, -0.01, 0.11, 0.006, 0.4, "not decided"))
        ('auc', '0.6', '0.65', '0.05', '-0.01 to 0.11', '0.006', 'not decided')
    """
    means = (f"{math.fsum(values) / len(values):.6g}" for values in (test.legacy, test.modern))
    name = f"{test.evaluation}/{test.metric}" if test.evaluation else test.metric
    return name, *means, f"{test.difference:.3g}", f"{test.low:.3g} to {test.high:.3g}", f"{test.margin:.3g}", test.outcome


def summarize(result: ParityResult) -> Summary:
    """Summarises a comparison.

    Args:
        result: Result of a comparison.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> run = ParityResult((), "replay", "different", Thresholds(), losses=(LossPoint(1, 2.0, 2.0), LossPoint(2, 1.0, 1.5)))
        >>> summary = summarize(run)
        >>> summary.max_abs_diff, summary.worst_step, summary.num_steps_outside
        (0.5, 2, 1)
    """
    gaps, steps, thresholds = loss_gaps(result), [point.step for point in result.losses], result.thresholds
    outside = [step for step, gap in zip(steps, gaps, strict=True) if gap.outside]
    (share, share_step), (largest, largest_step), (relative, relative_step) = (
        _worst([getattr(gap, name) for gap in gaps], steps) for name in ("share", "abs_diff", "rel_diff")
    )
    variables = [variable.max_abs_diff for variable in result.variables if variable.max_abs_diff is not None]
    states = [variable_state(variable, thresholds) for variable in result.variables]
    return Summary(
        num_steps=len(steps),
        num_steps_outside=len(outside),
        first_step_outside=outside[0] if outside else None,
        worst_step=share_step,
        worst_share=share,
        max_abs_diff=largest,
        max_abs_diff_step=largest_step,
        max_rel_diff=relative,
        max_rel_diff_step=relative_step,
        num_metrics=len(result.metrics),
        num_metrics_outside=sum(not thresholds.accept(pair.legacy, pair.modern) for pair in result.metrics),
        num_variables=len(result.variables),
        num_variables_outside=states.count("outside"),
        num_variables_one_sided=states.count("one-sided"),
        max_variable_abs_diff=max(variables, key=severity, default=None),
    )


def render_json(result: ParityResult) -> str:
    """Renders report.json: ``result.as_dict()``, and a ``summary`` of the whole.

    A number that is not finite is written as the string "NaN", "Infinity" or "-Infinity": Python's ``float`` and JavaScript's
    ``Number`` read all three back. Absent values are null.

    Args:
        result: Result of a comparison; its numbers may be NumPy's.

    Returns:
        One JSON object, ASCII only, with a final line feed.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> run = ParityResult((), "replay", "different", Thresholds(), losses=(LossPoint(1, 0.5, float("-inf")),))
        >>> json.loads(render_json(run))["losses"]
        [{'step': 1, 'legacy': 0.5, 'modern': '-Infinity'}]
    """
    content = dataclasses.replace(result, losses=()).as_dict() | {"summary": dataclasses.asdict(summarize(result))}
    text = json.dumps(_finite(content), indent=1, allow_nan=False) + "\n"
    before, empty, after = text.partition('\n "losses": []')
    # A point at a time: a training of a million steps would take gigabytes as a whole.
    losses = ",\n  ".join(json.dumps(_finite(dataclasses.asdict(point))) for point in result.losses)
    return f'{before}\n "losses": [\n  {losses}\n ]{after}' if losses else f"{before}{empty}{after}"


def _finite(content: Any) -> Any:
    """Returns content with the numbers of Python, and with strings for those that are not finite."""
    return json.loads(json.dumps(content, default=operator.methodcaller("item")), parse_constant=str)


def representative_steps(result: ParityResult) -> list[tuple[LossPoint, str]]:
    """Chooses the few steps that summarise a run, each with the reason for its choice.

    Args:
        result: Result of a comparison.

    Returns:
        At most six steps in order; empty without losses.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> run = ParityResult((), "replay", "equal", Thresholds(), losses=(LossPoint(1, 2.0, 2.0), LossPoint(2, 1.0, 1.0)))
        >>> [(point.step, reason) for point, reason in representative_steps(run)]
        [(1, 'first'), (2, 'last')]
    """
    if not result.losses:
        return []
    gaps = loss_gaps(result)
    picks = [(0, "first")]
    outside = next((index for index, gap in enumerate(gaps) if gap.outside), None)
    if outside is not None:
        picks.append((outside, "first outside"))
    picks += [(worst([getattr(gap, name) for gap in gaps]), f"max {name}") for name in ("abs_diff", "rel_diff")]
    picks.append((len(gaps) - 1, "last"))
    reasons: dict[int, list[str]] = {}
    for index, reason in picks:
        # In a run without differences every step is the worst one, which says nothing about the first.
        if not reason.startswith("max") or severity(gaps[index].abs_diff) > 0:
            reasons.setdefault(index, []).append(reason)
    return [(result.losses[index], ", ".join(reasons[index])) for index in sorted(reasons)]


def final_metrics(metrics: Sequence[MetricPair]) -> list[MetricPair]:
    """Returns each metric of each evaluation at its last step.

    Args:
        metrics: Metrics of all evaluations.

    Returns:
        One pair for each (evaluation, metric), in their first order.

    Example:
        >>> from estimator_bridge.parity.result import MetricPair
        >>> pairs = [MetricPair("", 1, "loss", 2.0, 2.0), MetricPair("", 2, "loss", 1.0, 1.0)]
        >>> [pair.step for pair in final_metrics(pairs)]
        [2]
    """
    last: dict[tuple[str, str], MetricPair] = {}
    for pair in metrics:
        key = (pair.evaluation, pair.metric)
        if key not in last or last[key].step <= pair.step:
            last[key] = pair
    return list(last.values())


def worst_variables(result: ParityResult) -> list[VariableDiff]:
    """Returns all variables, the most different first.

    Args:
        result: Result of a comparison.

    Returns:
        Variables outside the threshold, variables that one side lacks, then the others; each group by falling max_abs_diff.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> worst_variables(ParityResult((), "replay", "equal", Thresholds()))
        []
    """

    def rank(variable: VariableDiff) -> tuple[int, float, str]:
        group = get_args(State).index(variable_state(variable, result.thresholds))
        return group, -severity(variable.max_abs_diff or 0.0), variable.name

    return sorted(result.variables, key=rank)


def shown_windows(result: ParityResult) -> list[AnchorWindow]:
    """Chooses the windows between anchors that a report shows.

    Args:
        result: Result of a comparison with a rewrite.

    Returns:
        At most ``MOST_WINDOWS`` in the order of their steps: the first one, and of the others those that differ most.

    Example:
        >>> from estimator_bridge.parity.result import AnchorWindow, ParityResult, Thresholds
        >>> windows = tuple(AnchorWindow(step, 1, step / 1e9, None, "", "within") for step in range(100))
        >>> [window.anchor for window in shown_windows(ParityResult((), "replay", "equal", Thresholds(), windows=windows))][:3]
        [0, 81, 82]
    """

    def rank(number: int) -> tuple[bool, int, float, float]:
        window = result.windows[number]
        verdict = ("outside", "rounding", "within").index(window.verdict)
        return number > 0, verdict, -severity(window.loss_rel_diff), -severity(window.variable_rel_diff or 0.0)

    return [result.windows[number] for number in sorted(sorted(range(len(result.windows)), key=rank)[:MOST_WINDOWS])]


def spell_window(window: AnchorWindow) -> tuple[str, ...]:
    """Spells the anchor, the number of steps, the differences of losses and of variables, and the verdict of a window.

    Args:
        window: Window between anchors.

    Example:
        >>> from estimator_bridge.parity.result import AnchorWindow
        >>> spell_window(AnchorWindow(10, 10, 2e-7, 1e-6, "dense/bias", "within"))
        ('10', '10', '2.00e-7', '1.00e-6', 'dense/bias', 'within')
    """
    part = "-" if window.variable_rel_diff is None else spelling.difference(window.variable_rel_diff)
    loss = spelling.difference(window.loss_rel_diff)
    return f"{window.anchor:,}", f"{window.steps:,}", loss, part, window.variable or "-", window.verdict


def worst_predictions(result: ParityResult) -> list[PredictionGroup]:
    """Returns all groups of predictions, the most different first.

    Args:
        result: Result of a comparison.

    Returns:
        Groups that differ, then the others; both by falling max_abs_diff.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, PredictionGroup, Thresholds
        >>> groups = PredictionGroup("predict-0", "logits", True, 1e-8), PredictionGroup("predict-0", "classes", False, 1.0)
        >>> [group.name for group in worst_predictions(ParityResult((), "replay", "different", Thresholds(), predictions=groups))]
        ['classes', 'logits']
    """
    return sorted(result.predictions, key=lambda group: (group.is_equal, -severity(group.max_abs_diff or 0.0)))


def _worst(differences: Sequence[float], steps: Sequence[int]) -> tuple[float, int] | tuple[None, None]:
    """Returns the largest difference and its step; (None, None) without steps."""
    index = worst(differences) if steps else 0
    return (differences[index], steps[index]) if steps else (None, None)


def _ratio(value: float, limit: float) -> float:
    if limit:
        return value / limit
    return value * math.inf if value else 0.0
