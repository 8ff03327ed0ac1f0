"""A comparison as a few lines of Markdown, for a comment on a pull request."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from estimator_bridge.parity.report import spelling, summary
from estimator_bridge.parity.result import ParityResult

MOST_FINDINGS, MOST_METRICS = 3, 10
MESSAGE_LENGTH = 300
MARK = '<!-- "generator": "estimator-bridge" -->'


def render_markdown(result: ParityResult) -> str:
    """Renders a comparison as Markdown.

    Args:
        result: Result of a comparison.

    Returns:
        A heading, the first cause, the first findings and a short table; every string of the result is escaped in it.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> print(render_markdown(ParityResult(("train.py",), "replay", "equal", Thresholds())).splitlines()[1])
        **EQUAL** `train.py`: Nothing was trained in this comparison; in all else the modern path does what the legacy path does.
    """
    lines = [MARK, f"**{result.verdict.upper()}** {_code(shlex.join(result.command))}: {summary.headline(result)}", ""]
    if result.cause:
        step = "" if result.cause.step is None else f"step {result.cause.step:,}, "
        lines.append(f"- **cause** {step}{result.cause.name.value}: {_code(result.cause.seen)}")
        lines.append(f"- **to change in the new script** {_code(result.cause.change)}")
    for finding in result.findings[:MOST_FINDINGS]:
        step = "" if finding.step is None else f"step {finding.step:,}, "
        lines.append(f"- {step}{finding.level}: {_code(finding.message)}")
    more = len(result.findings) - MOST_FINDINGS
    lines += [f"- {spelling.count(more, 'more finding')} in the report", ""] if more > 0 else [""] if result.findings else []
    header: tuple[str, ...] = ("compared", "within", *result.sides, "max abs_diff", "max rel_diff")
    rows = list(_rows(result))
    if result.equivalence:
        header = ("metric", *result.sides, "difference", "90 % interval", "margin", "outcome")
        rows = [(_code(name), *values) for name, *values in map(summary.spell_equivalence, result.equivalence[:MOST_METRICS])]
    if rows:
        lines += [_row(header), _row(["---"] * len(header)), *map(_row, rows), ""]
    lines += _windows(result)
    versions = ", ".join(
        f"{name} {value}" for name, value in result.environment.items() if name in {"estimator-bridge", "tensorflow"}
    )
    limits = result.thresholds
    equal = (
        "equivalent: the interval lies within the margin"
        if result.equivalence
        else f"equal: rel_diff \\<= {spelling.threshold(limits.rel)} or abs_diff \\<= {spelling.threshold(limits.abs)}"
    )
    lines.append(f"{equal}; {result.mode}{'; ' if versions else ''}{versions}")
    return "\n".join(lines) + "\n"


def _windows(result: ParityResult) -> Iterator[str]:
    """Yields the lines of the table of windows between anchors; none without anchors."""
    shown = summary.shown_windows(result)
    if shown:
        rows = ((*numbers, _code(name), verdict) for *numbers, name, verdict in map(summary.spell_window, shown))
        yield from (_row(summary.WINDOW_HEADER), _row(["---"] * len(summary.WINDOW_HEADER)), *map(_row, rows), "")
        more = len(result.windows) - len(shown)
        yield from [f"{spelling.count(more, 'more window')} in report.json", ""] if more else []


def _rows(result: ParityResult) -> Iterator[tuple[str, ...]]:
    totals = summary.summarize(result)
    if result.losses:
        within = f"{totals.num_steps - totals.num_steps_outside:,} of {spelling.count(totals.num_steps, 'step')}"
        last = summary.spell_pair(result.losses[-1], result.thresholds)
        largest = (spelling.difference(value) for value in (totals.max_abs_diff, totals.max_rel_diff))
        yield "loss, its last value", within, last.legacy, last.modern, *largest
    final = summary.final_metrics(result.metrics)
    for pair in final[:MOST_METRICS]:
        spelled = summary.spell_pair(pair, result.thresholds)
        name = f"{pair.evaluation}/{pair.metric}" if pair.evaluation else pair.metric
        yield _code(name), "no" if spelled.outside else "yes", *spelled[:4]
    if len(final) > MOST_METRICS:
        yield f"{len(final) - MOST_METRICS} more metrics", "", "", "", "", ""
    if result.variables:
        outside = totals.num_variables_outside + totals.num_variables_one_sided
        within = f"{totals.num_variables - outside:,} of {totals.num_variables:,}"
        yield "variables", within, "", "", spelling.difference(totals.max_variable_abs_diff), ""
    if result.predictions:
        equal = sum(group.is_equal for group in result.predictions)
        yield "predictions", f"{equal} of {len(result.predictions)}", "", "", "", ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    """Returns a string as a code span, in which no name becomes a link, a mention or a tag."""
    shown = spelling.visible(spelling.shorten(text, MESSAGE_LENGTH)).replace("`", "'").replace("|", "\\|").replace("\n", " ")
    return f"`{shown or ' '}`"
