"""The HTML page: one file that opens anywhere, without a network, with or without JavaScript."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

import jinja2
import markupsafe

from estimator_bridge.parity.report import text
from estimator_bridge.parity.report.charts import numerals
from estimator_bridge.parity.report.charts.chart import difference_chart, loss_chart, percent, step_scale
from estimator_bridge.parity.report.charts.gaps import SpelledPair, measure, severity, spell_pair
from estimator_bridge.parity.report.summary import Summary, final_metrics, headline, representative_steps, summarize
from estimator_bridge.parity.report.variables import variable_table
from estimator_bridge.parity.result import LossPoint, MetricPair, ParityResult

# Limits of what a page shows; report.json has everything.
MOST_FINDINGS, MOST_METRICS, MOST_READOUTS = 100, 300, 1000
MESSAGE_LENGTH = 4000


def render_html(result: ParityResult) -> str:
    """Renders the report as one HTML document with inline SVG, CSS and JavaScript and no external resource.

    Args:
        result: Result of a comparison.

    Returns:
        The document; every string of the result is escaped in it.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> page = render_html(ParityResult(("train.py",), "replay", "equal", Thresholds()))
        >>> page.startswith("<!doctype html>"), "Equal" in page
        (True, True)
    """
    summary, final = summarize(result), final_metrics(result.metrics)
    # The evaluations before the last one, newest first: of too many, the oldest are left out.
    known = set(map(id, final))
    earlier = [pair for pair in reversed(result.metrics) if id(pair) not in known]
    return _template().render(
        result=result,
        headline=headline(result),
        command=text.shorten(shlex.join(result.command), MESSAGE_LENGTH),
        findings=result.findings[:MOST_FINDINGS],
        tiles=list(_tiles(summary)),
        charts=[loss_chart(result), difference_chart(result)] if result.losses else [],
        readouts=_readouts(result),
        steps=[
            ((f"{point.step:,}", reason), spell_pair(point, result.thresholds))
            for point, reason in representative_steps(result)
        ],
        metrics=_metric_rows(final, result),
        all_metrics=_metric_rows(earlier, result),
        variables=variable_table(result),
        summary=summary,
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("estimator_bridge.parity.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shorten"] = text.shorten
    for name in ("count", "difference", "seconds", "shape", "threshold"):
        environment.filters[name] = getattr(numerals, name)
    return environment.get_template("template.html.j2")


def _finalize(value: Any) -> Any:
    # Each string that the template prints passes here before it is escaped; markup has done so already.
    return text.visible(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value


def _tiles(summary: Summary) -> Iterator[tuple[str, str, bool]]:
    """Yields (value, label, True if it is outside) for each number of the overview."""
    yield _ratio(summary.num_steps, summary.num_steps_outside, "steps")
    if summary.worst_share is not None:
        relative, absolute = numerals.difference(summary.max_rel_diff), numerals.difference(summary.max_abs_diff)
        yield relative, f"max rel_diff of a loss, step {summary.max_rel_diff_step:,}", False
        yield absolute, f"max abs_diff of a loss, step {summary.max_abs_diff_step:,}", False
        share = numerals.share(summary.worst_share)
        yield share, f"of the threshold at the worst step, {summary.worst_step:,}", not summary.worst_share <= 1
    yield _ratio(summary.num_metrics, summary.num_metrics_outside, "metric values")
    yield _ratio(summary.num_variables, summary.num_variables_outside + summary.num_variables_one_sided, "variables")


def _ratio(total: int, outside: int, noun: str) -> tuple[str, str, bool]:
    if not total:
        return "0", f"{noun} compared", False
    return f"{total - outside:,} / {total:,}", f"{noun} within the thresholds", outside > 0


def _metric_rows(pairs: list[MetricPair], result: ParityResult) -> list[tuple[tuple[str, ...], SpelledPair]]:
    return [
        (
            (text.shorten(pair.evaluation, 200) or "eval", f"{pair.step:,}", text.shorten(pair.metric, 200)),
            spell_pair(pair, result.thresholds),
        )
        for pair in pairs[:MOST_METRICS]
    ]


def _readouts(result: ParityResult) -> list[tuple[object, ...]]:
    if not result.losses:
        return []
    scale, points = step_scale(result), _worst_of_each_part(result)
    return [
        (percent(scale.fraction(point.step)), f"{point.step:,}", *spell_pair(point, result.thresholds)[:4]) for point in points
    ]


def _worst_of_each_part(result: ParityResult) -> Iterable[LossPoint]:
    losses, parts = result.losses, min(len(result.losses), MOST_READOUTS)
    for part in range(parts):
        points = losses[part * len(losses) // parts : (part + 1) * len(losses) // parts]
        yield max(points, key=lambda point: severity(measure(point.legacy, point.modern, result.thresholds).abs_diff))
