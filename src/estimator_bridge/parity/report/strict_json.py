"""JSON that every parser reads: NaN and infinities, which JSON has no numbers for, become strings."""

from __future__ import annotations

import dataclasses
import json
import math
import numbers
from typing import Any

from estimator_bridge.parity.report.summary import summarize
from estimator_bridge.parity.result import ParityResult


def render_json(result: ParityResult) -> str:
    """Renders report.json: ``result.as_dict()``, and a ``summary`` of the whole.

    A number that is not finite is written as the string "NaN", "Infinity" or "-Infinity": Python's ``float`` and JavaScript's
    ``Number`` read all three back. Absent values are null.

    Args:
        result: Result of a comparison.

    Returns:
        One JSON object, ASCII only, with a final line feed.

    Example:
        >>> from estimator_bridge.parity.result import LossPoint, ParityResult, Thresholds
        >>> run = ParityResult((), "replay", "different", Thresholds(), losses=(LossPoint(1, 0.5, float("nan")),))
        >>> json.loads(render_json(run))["losses"]
        [{'step': 1, 'legacy': 0.5, 'modern': 'NaN'}]
    """
    content = result.as_dict() | {"summary": dataclasses.asdict(summarize(result))}
    return json.dumps(to_strict(content), indent=1, allow_nan=False) + "\n"


def to_strict(value: Any) -> Any:
    """Converts a value to one that strict JSON can contain.

    Args:
        value: Dictionaries, sequences, strings, numbers (also NumPy's) or None.

    Returns:
        Plain dictionaries, lists, strings, finite numbers, booleans and None.

    Example:
        >>> to_strict({"loss": (1.5, float("-inf"))})
        {'loss': [1.5, '-Infinity']}
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, dict):
        return {str(key): to_strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_strict(item) for item in value]
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else json.dumps(number)  # as Python's own JSON spells it, in quotes
    return str(value)
