"""The HTML page: one file that opens anywhere, without a network, with or without JavaScript."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import jinja2
import markupsafe

from estimator_bridge.errors import documentation
from estimator_bridge.parity.report import spelling, summary
from estimator_bridge.parity.report.charts.chart import (
    difference_chart,
    loss_chart,
    metric_charts,
    parting,
    percent,
    step_scale,
    step_ticks,
)
from estimator_bridge.parity.report.variables import variable_table
from estimator_bridge.parity.result import Level, MetricPair, ParityResult

# Limits of what a page shows; report.json has everything.
MOST_FINDINGS, MOST_METRICS, MOST_CURVES, MOST_READOUTS, MOST_GRADIENTS = 100, 300, 4, 1000, 20
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
    totals, final, beside = summary.summarize(result), summary.final_metrics(result.metrics), _beside(result)
    # The evaluations before the last one, newest first: of too many, the oldest are left out.
    known = set(map(id, final))
    earlier = [pair for pair in reversed(result.metrics) if id(pair) not in known]
    return _template().render(
        result=result,
        headline=summary.headline(result),
        command=spelling.shorten(shlex.join(result.command), MESSAGE_LENGTH),
        findings=result.findings[:MOST_FINDINGS],
        tiles=list(_tiles(result, totals) if result.mode != "seeds" else _seed_tiles(result)),
        equivalence=[summary.spell_equivalence(test) for test in result.equivalence[:MOST_METRICS]],
        charts=[loss_chart(result), difference_chart(result)] if result.losses else [],
        curves=metric_charts(result, MOST_CURVES) if result.losses else [],
        step_ticks=step_ticks(result) if result.losses else (),
        marker=parting(result) if result.losses else None,
        readouts=list(_readouts(result)),
        steps=[
            ((f"{point.step:,}", reason), summary.spell_pair(point, result.thresholds), *beside(point))
            for point, reason in summary.representative_steps(result)
        ],
        metrics=_metric_rows(final, result),
        all_metrics=_metric_rows(earlier, result),
        predictions=[(group, *beside(group)) for group in summary.worst_predictions(result)[:MOST_METRICS]],
        windows=list(map(summary.spell_window, summary.shown_windows(result))),
        window_header=summary.WINDOW_HEADER,
        gradients=sorted(result.gradients, key=lambda pair: not pair.differs)[:MOST_GRADIENTS],
        variables=variable_table(result),
        summary=totals,
        guide=documentation("how-to/compare-a-rewrite", "causes")
        if result.cause
        else documentation("how-to/compare", "what-is-compared"),
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
    for name in ("count", "difference", "seconds", "shape", "shorten", "threshold"):
        environment.filters[name] = getattr(spelling, name)
    return environment.get_template("template.html.j2")


def _finalize(value: Any) -> Any:
    # Each string that the template prints passes here before it is escaped; markup has done so already.
    return spelling.visible(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value


def _tiles(result: ParityResult, totals: summary.Summary) -> Iterator[tuple[str, str, bool]]:
    """Yields (value, label, True if it is outside) for each number of the overview."""
    yield _ratio(result, totals.num_steps, totals.num_steps_outside, "steps")
    if summary.is_identical(result, "loss"):
        yield "identical", "each loss, to the last bit", False
    elif totals.worst_share is not None:
        relative, absolute = spelling.difference(totals.max_rel_diff), spelling.difference(totals.max_abs_diff)
        yield relative, f"max rel_diff of a loss, step {totals.max_rel_diff_step:,}", False
        yield absolute, f"max abs_diff of a loss, step {totals.max_abs_diff_step:,}", False
        share = spelling.share(totals.worst_share)
        yield share, f"of the threshold at the worst step, {totals.worst_step:,}", not totals.worst_share <= 1
    variables_outside = totals.num_variables_outside + totals.num_variables_one_sided
    counts: list[tuple[Level, int, int, str]] = [
        ("metric", totals.num_metrics, totals.num_metrics_outside, "metric value"),
        ("variable", totals.num_variables, variables_outside, "variable"),
    ]
    if result.predictions:
        num_different = sum(not group.is_equal for group in result.predictions)
        counts.append(("prediction", len(result.predictions), num_different, "predicted output"))
    for level, total, outside, noun in counts:
        if summary.is_identical(result, level):
            yield "identical", f"{spelling.count(total, noun)}, to the last bit", False
        else:
            yield _ratio(result, total, outside, f"{noun}s")


def _seed_tiles(result: ParityResult) -> Iterator[tuple[str, str, bool]]:
    """Yields the tiles of a comparison by final metrics."""
    tests = result.equivalence
    equivalent = sum(test.outcome == "equivalent" for test in tests)
    yield f"{len(tests[0].legacy) if tests else 0}", "seeds", False
    yield f"{equivalent} / {len(tests)}", "final metrics equivalent", equivalent < len(tests)


def _ratio(result: ParityResult, total: int, outside: int, noun: str) -> tuple[str, str, bool]:
    if not total:
        return "0", f"{noun} compared", False
    if summary.by_rounding(result, outside):
        return f"{total - outside:,} / {total:,}", f"{noun} within the thresholds, the others by rounding", False
    return f"{total - outside:,} / {total:,}", f"{noun} within the thresholds", outside > 0


def _beside(result: ParityResult) -> Callable[[object], tuple[tuple[str, ...], tuple[str, ...]]]:
    """Returns a function that spells the noise and the reference's value beside a loss or metric."""
    noise, reference = summary.spell_noise(result), summary.spell_reference(result)
    return lambda item: (noise(item), reference(item))


def _metric_rows(
    pairs: list[MetricPair], result: ParityResult
) -> list[tuple[tuple[str, ...], summary.SpelledPair, tuple[str, ...], tuple[str, ...]]]:
    beside = _beside(result)
    return [
        (
            (spelling.shorten(pair.evaluation, 200) or "eval", f"{pair.step:,}", spelling.shorten(pair.metric, 200)),
            summary.spell_pair(pair, result.thresholds),
            *beside(pair),
        )
        for pair in pairs[:MOST_METRICS]
    ]


def _readouts(result: ParityResult) -> Iterator[tuple[object, ...]]:
    """Yields the place and the values of the step with the largest difference in each part of the run."""
    if not result.losses:
        return
    scale, differences = step_scale(result), [gap.abs_diff for gap in summary.loss_gaps(result)]
    parts = min(len(differences), MOST_READOUTS)
    for part in range(parts):
        first, end = part * len(differences) // parts, (part + 1) * len(differences) // parts
        point = result.losses[first + summary.worst(differences[first:end])]
        spelled = summary.spell_pair(point, result.thresholds)
        yield percent(scale.fraction(point.step)), f"{point.step:,}", *spelled[:4]
