"""All pipelines of a fleet side by side: a dashboard, JUnit and Markdown for CI jobs, and data for programs."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from estimator_bridge.fleet.plan import Pipeline
from estimator_bridge.fleet.results import Result, Stage

REACHED = frozenset({Stage.EQUAL, Stage.KERAS, Stage.DONE})
"""Stages at which a comparison found both sides equal."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A pipeline in an overview.

    Attributes:
        pipeline: Pipeline.
        stage: Its stage.
        note: Note on waivers, or on a result that is out of date.
        result: Result of its last comparison; None if there is none.
        blockers: Findings of ``check`` that need a human, as text.
    """

    pipeline: Pipeline
    stage: Stage
    note: str = ""
    result: Result | None = None
    blockers: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The first thing to know: a note, what a comparison found, or what needs a human."""
        found = self.result.message if self.result and self.stage not in REACHED and not self.note else ""
        return self.note or found or (self.blockers[0] if self.blockers else "")


def as_data(rows: Sequence[Row]) -> dict[str, Any]:
    """Returns the rows as values for JSON.

    Args:
        rows: Rows of the overview.
    """
    counts = Counter(row.stage for row in rows)
    pipelines = [
        {
            "name": row.pipeline.name,
            "owner": row.pipeline.owner,
            "script": str(row.pipeline.folder / row.pipeline.file),
            "stage": row.stage.value,
            "note": row.note,
            "blockers": list(row.blockers),
            "result": None if row.result is None else dataclasses.asdict(row.result),
        }
        for row in rows
    ]
    return {"counts": {stage.value: counts[stage] for stage in Stage}, "pipelines": pipelines}


def render_junit(rows: Sequence[Row], is_check: bool = False) -> str:
    """Renders the rows as JUnit XML: a test case a pipeline, which fails if the sides differ, and is skipped where nothing was compared.

    Args:
        rows: Rows of the overview.
        is_check: True if only the scripts were judged; a test case then fails if its pipeline needs a human, and else passes.

    Example:
        >>> render_junit([Row(Pipeline("ads", "train.py"), Stage.EQUAL)]).count("<testcase")
        1
    """
    outcomes = [_outcome_of_check(row) if is_check else _outcome(row) for row in rows]
    counts = {f"{kind}s" if kind != "skipped" else kind: str(outcomes.count(kind)) for kind in ("failure", "error", "skipped")}
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", {"name": "estimator-bridge fleet", "tests": str(len(rows)), **counts})
    ET.SubElement(ET.SubElement(suite, "properties"), "property", {"name": "generator", "value": "estimator-bridge"})
    for row, outcome in zip(rows, outcomes, strict=True):
        seconds = f"{row.result.seconds:.1f}" if row.result else "0"
        case = ET.SubElement(
            suite,
            "testcase",
            {"classname": _printable(row.pipeline.owner or "fleet"), "name": row.pipeline.name, "time": seconds},
        )
        if outcome:
            message = f"{Stage.HUMAN.value}: {row.blockers[0]}" if is_check else f"{row.stage.value}: {row.message}"
            ET.SubElement(case, outcome, {"message": _printable(message)})
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _outcome(row: Row) -> str:
    if row.stage in REACHED:
        return ""
    if row.stage is Stage.MODERN:
        return "failure"
    return "error" if row.result and not row.note else "skipped"


def _outcome_of_check(row: Row) -> str:
    return "failure" if row.blockers else ""


def _printable(text: str) -> str:
    """Returns a text without the characters that XML cannot hold."""
    return "".join(
        one if one in "\t\n" or (one >= " " and not "\ud800" <= one <= "\udfff" and one < "\ufffe") else "\ufffd"
        for one in text
    )


def render_markdown(rows: Sequence[Row]) -> str:
    """Renders the rows as a table in Markdown.

    Args:
        rows: Rows of the overview.

    Example:
        >>> print(render_markdown([Row(Pipeline("ads", "train.py", owner="team a"), Stage.EQUAL)]).splitlines()[-1])
        | ads | team a | equal |  |
    """
    counts = Counter(row.stage for row in rows)
    total = ", ".join(f"{counts[stage]} {stage.value}" for stage in reversed(Stage) if counts[stage])
    lines = [
        '<!-- "generator": "estimator-bridge" -->',
        f"**{len(rows)} pipelines**: {total}",
        "",
        "| pipeline | owner | stage | |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {_cell(row.pipeline.name)} | {_cell(row.pipeline.owner)} | {row.stage.value} | {_cell(row.message)} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    first = text.split("\n", 1)[0][:300]
    return "".join(f"&#{ord(one)};" if one in "|<>&`*_[]\\" else one for one in first)


def render_page(rows: Sequence[Row], history: Sequence[Mapping[str, Any]], out: Path) -> str:
    """Returns the dashboard: one HTML document without any external resource; all text is escaped in it.

    Args:
        rows: Rows of the overview.
        history: Number of pipelines at each stage, by day.
        out: Folder of the page, below which the reports are.
    """
    import jinja2  # takes long to load

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    order = {stage: place for place, stage in enumerate(Stage)}
    reports = {row.pipeline.name for row in rows if (out / row.pipeline.name / "report" / "report.html").is_file()}
    return environment.get_template("dashboard.html.j2").render(
        rows=sorted(rows, key=lambda row: (order[row.stage], row.pipeline.name)),
        counts=Counter(row.stage for row in rows),
        reached=sum(row.stage in REACHED for row in rows),
        reports=reports,
        history=list(history)[-60:],
        Stage=Stage,
        order=order,
        date=datetime.datetime.now(datetime.timezone.utc),
    )
