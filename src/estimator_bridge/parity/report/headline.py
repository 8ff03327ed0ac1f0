"""The verdict as one sentence, the same on the terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from estimator_bridge.parity.result import ParityResult

    Level = Literal["initial values", "batch", "first update", "loss", "metric", "variable", "prediction", "calls"]

_WHERE: dict[Level, str] = {
    "initial values": "in their initial values",
    "batch": "in a batch",
    "first update": "at the first update",
    "loss": "in the loss",
    "metric": "in a metric",
    "variable": "in a variable",
    "prediction": "in a prediction",
    "calls": "in the calls that they make",
}


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
        return "The modern path trains as the legacy path does."
    if result.verdict == "not comparable":
        return "The two sides could not be compared."
    if not result.findings:
        return "The two sides differ."
    cause = result.findings[0]
    # A level that is not in the table yet is still a word that says where.
    where = _WHERE.get(cause.level, f"in: {cause.level}") if cause.step is None else f"at step {cause.step:,}"
    return f"The two sides differ {where}."
