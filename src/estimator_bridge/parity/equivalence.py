"""Two one-sided t-tests (TOST): whether the final metrics of two sides, trained with several seeds, are equivalent.

Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of average
bioavailability", 1987. Both sides train with the same seeds, so the differences of each seed are tested.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from estimator_bridge.parity.result import MetricEquivalence, Outcome

CONFIDENCE = 0.95


def judge_metric(
    evaluation: str, metric: str, legacy: Sequence[float], modern: Sequence[float], margin: float, tests: int = 1
) -> MetricEquivalence:
    """Tests the final values of one metric.

    The metric is equivalent if both one-sided tests reject that the mean difference lies beyond the margin: below it, and above it. It
    is not equivalent if a test shows that the difference does lie beyond the margin; since one metric of many suffices for that, the
    error of this test is divided by their number (Bonferroni).

    Args:
        evaluation: Name of the evaluation.
        metric: Name of the metric.
        legacy: Values of the legacy side, one a seed.
        modern: Values of the other side for the same seeds.
        margin: Largest difference of the means that counts as equivalent, as a share of the legacy side's mean.
        tests: Number of metrics that are tested.

    Example:
        >>> judge_metric("", "accuracy", [0.90, 0.91, 0.89], [0.901, 0.909, 0.891], margin=0.01).outcome
        'equivalent'
    """
    differences = [new - old for old, new in zip(legacy, modern, strict=True)]
    count, mean = len(differences), statistics.fmean(differences)
    limit = margin * abs(statistics.fmean(legacy))
    if not math.isfinite(mean) or not math.isfinite(limit):
        return MetricEquivalence(evaluation, metric, tuple(legacy), tuple(modern), mean, mean, mean, limit, 1.0, "not decided")
    error, freedom = statistics.stdev(differences) / math.sqrt(count), count - 1
    half = error * student_quantile(CONFIDENCE, freedom)
    equal = max(_beyond(limit + mean, error, freedom), _beyond(limit - mean, error, freedom))
    unequal = _beyond(abs(mean) - limit, error, freedom)
    outcome: Outcome = "not decided"
    if equal <= 1 - CONFIDENCE:
        outcome = "equivalent"
    elif unequal <= (1 - CONFIDENCE) / tests:
        outcome = "not equivalent"
    interval = (mean - half, mean + half)
    return MetricEquivalence(evaluation, metric, tuple(legacy), tuple(modern), mean, *interval, limit, equal, outcome)


def _beyond(distance: float, error: float, freedom: int) -> float:
    """Returns the p-value of the one-sided test that a mean, ``distance`` above a limit, is above it."""
    if not error:
        return 0.0 if distance > 0 else 1.0
    return student_cdf(-distance / error, freedom)


def student_cdf(t: float, freedom: int) -> float:
    """Returns the probability that a value of Student's t distribution is at most ``t``: a finite sum for whole degrees of freedom.

    Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.

    Args:
        t: Value.
        freedom: Degrees of freedom, 1 or more.

    Example:
        >>> student_cdf(0.0, 4), round(student_cdf(2.131846786, 4), 9), round(student_cdf(-12.70620474, 1), 9)
        (0.5, 0.95, 0.025)
    """
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    term = cosine if is_odd else 1.0
    total = 0.0
    for index in range(freedom // 2):
        total += term
        numerator = 2 * index + 1 + is_odd
        term *= cosine * cosine * numerator / (numerator + 1)
    share = (2 / math.pi) * (angle + sine * total) if is_odd else sine * total
    return min(1.0, max(0.0, (1 + share) / 2))


def student_quantile(probability: float, freedom: int) -> float:
    """Returns the value that Student's t distribution stays below with a probability between 0.5 and 1.

    Args:
        probability: Probability.
        freedom: Degrees of freedom, 1 or more.

    Example:
        >>> round(student_quantile(0.95, 4), 6)
        2.131847
    """
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return high
