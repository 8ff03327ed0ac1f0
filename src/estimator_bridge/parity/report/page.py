"""The HTML page: one file that opens anywhere, without a network, with or without JavaScript."""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import shlex
from typing import TYPE_CHECKING, Any

import jinja2
import markupsafe

from estimator_bridge.parity.report import text
from estimator_bridge.parity.report.charts import numerals
from estimator_bridge.parity.report.charts.chart import step_scale
from estimator_bridge.parity.report.charts.difference_chart import difference_chart
from estimator_bridge.parity.report.charts.gaps import measure, severity, spell_pair
from estimator_bridge.parity.report.charts.loss_chart import loss_chart
from estimator_bridge.parity.report.headline import headline
from estimator_bridge.parity.report.rows import final_metrics, representative_steps
from estimator_bridge.parity.report.summary import Summary, summarize
from estimator_bridge.parity.report.variables import variable_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from estimator_bridge.parity.result import LossPoint, MetricPair, ParityResult, Thresholds

# Limits of what a page shows; report.json has everything.
MOST_FINDINGS, MOST_METRICS, MOST_READOUTS = 100, 300, 1000
MESSAGE_LENGTH = 4000


@dataclasses.dataclass(frozen=True)
class ValueRow:
    """A row of a table of legacy and modern values."""

    labels: tuple[str, ...]
    legacy: str
    modern: str
    abs_diff: str
    rel_diff: str
    outside: bool


@dataclasses.dataclass(frozen=True)
class Tile:
    """One number of the overview."""

    value: str
    label: str
    outside: bool = False


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
    summary = summarize(result)
    return _template().render(
        result=result,
        headline=headline(result),
        command=text.shorten(shlex.join(result.command), MESSAGE_LENGTH),
        findings=result.findings[:MOST_FINDINGS],
        tiles=_tiles(summary),
        charts=[chart for chart in (loss_chart(result), difference_chart(result)) if chart],
        readouts=_readouts(result),
        steps=[_step_row(point, reason, result.thresholds) for point, reason in representative_steps(result)],
        metrics=[_metric_row(pair, result.thresholds) for pair in final_metrics(result.metrics)[:MOST_METRICS]],
        all_metrics=[_metric_row(pair, result.thresholds) for pair in _earlier(result)],
        variables=variable_table(result),
        summary=summary,
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=numerals.count,
        difference=numerals.difference,
        seconds=numerals.seconds,
        shorten=text.shorten,
        threshold=numerals.threshold,
    )
    return environment.get_template("template.html.j2")


def _source(name: str) -> str:
    return importlib.resources.files("estimator_bridge.parity.report").joinpath(name).read_text(encoding="utf-8")


def _finalize(value: Any) -> Any:
    # Each string that the template prints passes here before it is escaped; markup has done so already.
    return text.visible(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value


def _tiles(summary: Summary) -> list[Tile]:
    tiles = [_ratio_tile(summary.num_steps, summary.num_steps_outside, "steps")]
    if summary.worst_share is not None:
        outside = not summary.worst_share <= 1
        tiles += [
            Tile(numerals.difference(summary.max_rel_diff), f"max rel_diff of a loss, step {summary.max_rel_diff_step:,}"),
            Tile(numerals.difference(summary.max_abs_diff), f"max abs_diff of a loss, step {summary.max_abs_diff_step:,}"),
            Tile(numerals.share(summary.worst_share), f"of the threshold at the worst step, {summary.worst_step:,}", outside),
        ]
    tiles.append(_ratio_tile(summary.num_metrics, summary.num_metrics_outside, "metric values"))
    outside_or_alone = summary.num_variables_outside + summary.num_variables_one_sided
    tiles.append(_ratio_tile(summary.num_variables, outside_or_alone, "variables"))
    return tiles


def _ratio_tile(total: int, outside: int, noun: str) -> Tile:
    if not total:
        return Tile("0", f"{noun} compared")
    return Tile(f"{total - outside:,} / {total:,}", f"{noun} within the thresholds", outside > 0)


def _step_row(point: LossPoint, reason: str, thresholds: Thresholds) -> ValueRow:
    return _pair((f"{point.step:,}", reason), point, thresholds)


def _metric_row(pair: MetricPair, thresholds: Thresholds) -> ValueRow:
    name = text.shorten(pair.evaluation, 200) or "eval"
    return _pair((name, f"{pair.step:,}", text.shorten(pair.metric, 200)), pair, thresholds)


def _pair(labels: tuple[str, ...], values: LossPoint | MetricPair, thresholds: Thresholds) -> ValueRow:
    outside = not thresholds.accept(values.legacy, values.modern)
    return ValueRow(labels, *spell_pair(values, thresholds), outside)


def _earlier(result: ParityResult) -> Sequence[MetricPair]:
    # The evaluations before the last one, newest first: of too many, the oldest are left out.
    final = set(map(id, final_metrics(result.metrics)))
    return [pair for pair in reversed(result.metrics) if id(pair) not in final][:MOST_METRICS]


def _readouts(result: ParityResult) -> list[tuple[object, ...]]:
    scale = step_scale(result) if result.losses else None
    rows: list[tuple[object, ...]] = []
    for point in _worst_of_each_part(result):
        pair = _pair((f"{point.step:,}",), point, result.thresholds)
        at = round(scale.fraction(point.step) * 100, 2) if scale else 0.0
        rows.append((at, *pair.labels, pair.legacy, pair.modern, pair.abs_diff, pair.rel_diff))
    return rows


def _worst_of_each_part(result: ParityResult) -> Iterable[LossPoint]:
    losses, parts = result.losses, min(len(result.losses), MOST_READOUTS)
    for part in range(parts):
        points = losses[part * len(losses) // parts : (part + 1) * len(losses) // parts]
        yield max(points, key=lambda point: severity(measure(point.legacy, point.modern, result.thresholds).abs_diff))
