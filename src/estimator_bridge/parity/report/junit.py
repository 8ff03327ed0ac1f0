"""A comparison as JUnit XML: one test case for each part of it, so that a CI job lists what failed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args
from xml.etree import ElementTree as ET

from estimator_bridge.parity.report import spelling, summary
from estimator_bridge.parity.result import Level, LossPoint, MetricPair, ParityResult

MESSAGE_LENGTH = 1000


class Case(NamedTuple):
    """One test case; ``message`` is empty if its part of the comparison is equal."""

    level: str
    name: str
    message: str


def render_junit(result: ParityResult) -> str:
    """Renders a comparison as JUnit XML.

    The last case is the verdict: it passes, fails with the first cause, or is an error if the scripts could not be compared. Then the
    parts that differ are skipped.

    Args:
        result: Result of a comparison.

    Returns:
        The document; every string of the result is escaped in it.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> render_junit(ParityResult(("train.py",), "replay", "equal", Thresholds())).count("<testcase")
        1
    """
    is_compared = result.exit_code < 2
    found = list(cases(result))
    outcome = "failure" if is_compared else "skipped"
    root = ET.Element("testsuites")
    counts = {
        "tests": len(found) + 1,
        "failures": sum(bool(case.message) for case in found) + (result.exit_code == 1) if is_compared else 0,
        "errors": int(not is_compared),
        "skipped": 0 if is_compared else sum(bool(case.message) for case in found),
    }
    seconds = f"{sum(result.seconds.values()):.3f}"
    suite = ET.SubElement(
        root,
        "testsuite",
        {"name": "estimator-bridge compare", **{key: str(value) for key, value in counts.items()}, "time": seconds},
    )
    properties = ET.SubElement(suite, "properties")
    versions = {"generator": "estimator-bridge", "mode": result.mode, **result.environment}
    for name, value in versions.items():
        ET.SubElement(properties, "property", {"name": _text(name), "value": _text(value)})
    classname = _text(shlex.join(result.command))
    for case in found:
        _add(suite, classname, case, outcome)
    _add(suite, classname, _verdict(result), "failure" if is_compared else "error")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def cases(result: ParityResult) -> Iterator[Case]:
    """Yields the parts of a comparison in the order in which two trainings can part.

    Args:
        result: Result of a comparison.
    """
    details = list(_details(result))
    failed = {case.level for case in details if case.message}
    for level in get_args(Level):
        messages = [finding.message for finding in result.findings if finding.level == level]
        if level not in failed and (messages or level in _compared(result)):
            yield Case(level, level, " ".join(messages))
        yield from (case for case in details if case.level == level)


def _compared(result: ParityResult) -> set[str]:
    """Returns the levels that were compared as a whole."""
    training = {"initial values", "batch", "first update"} if result.losses else set()
    return training | ({"variable"} if result.variables else set())


def _details(result: ParityResult) -> Iterator[Case]:
    for name, points in _windows(result.losses):
        yield Case("loss", name, _outside(points, result))
    groups: dict[str, list[MetricPair]] = {}
    for pair in result.metrics:
        groups.setdefault(f"{pair.metric} of evaluation {pair.evaluation or 'eval'}", []).append(pair)
    for name, pairs in groups.items():
        yield Case("metric", name, _outside(pairs, result))
    for group in result.predictions:
        yield Case(
            "prediction", f"{group.call}: {group.name or 'prediction'}", "" if group.is_equal else "The predictions differ."
        )


def _windows(losses: Sequence[LossPoint]) -> Iterator[tuple[str, Sequence[LossPoint]]]:
    """Yields steps 1 to 10, 11 to 100 and so on, by their place in the run: the same windows for runs of other lengths."""
    first, end = 0, 10
    while first < len(losses):
        points = losses[first:end]
        yield f"steps {points[0].step} to {points[-1].step}", points
        first, end = end, end * 10


def _outside(pairs: Sequence[LossPoint | MetricPair], result: ParityResult) -> str:
    outside = [pair for pair in pairs if not result.thresholds.accept(pair.legacy, pair.modern)]
    if not outside or summary.by_rounding(result, len(outside)):
        return ""
    old, new, absolute, relative, _ = summary.spell_pair(outside[0], result.thresholds)
    values = f"{result.sides[0]} {old}, {result.sides[1]} {new}, abs_diff {absolute}, rel_diff {relative}"
    return f"{len(outside)} of {len(pairs)} values are outside, first at step {outside[0].step}: {values}."


def _verdict(result: ParityResult) -> Case:
    if not result.exit_code:
        return Case("verdict", "verdict", "")
    first = [finding.message for finding in result.findings[:1]]
    if result.cause:
        first = [result.cause.seen, f"To change in the new script: {result.cause.change}"]
    reasons = [summary.headline(result), *first]
    return Case("verdict", "verdict", f"{result.verdict}: {' '.join(reasons)}")


def _add(suite: ET.Element, classname: str, case: Case, outcome: str) -> None:
    name = case.name if case.name == case.level else f"{case.level}: {case.name}"
    element = ET.SubElement(suite, "testcase", {"classname": classname, "name": _text(name), "time": "0"})
    if case.message:
        details = ET.SubElement(element, outcome, {"message": _text(case.message), "type": case.level})
        details.text = spelling.visible(case.message)


def _text(text: str) -> str:
    return spelling.visible(spelling.shorten(text, MESSAGE_LENGTH))
