"""The page of ``check``."""

from __future__ import annotations

import dataclasses
import re

from estimator_bridge.compat.source.checking import FileReport
from estimator_bridge.compat.source.reports.page import Blocker, Stage, count_by_folder, find_blockers, render_page, stage_of
from estimator_bridge.compat.source.verdicts import Verdict
from tests.compat.source.reading import judge
from tests.compat.source.reports.pages import read
from tests.notebooks import notebook

GONE = b"import tensorflow as tf\ntf.gone\n"


def reports() -> list[FileReport]:
    """Returns reports on files of each stage."""
    return [
        judge().content(b"x = 1\n", "jobs/fine.py"),
        judge().content(GONE, "jobs/a/one.py"),
        judge().content(GONE + b"tf.gone\ntf.also_gone\n", "jobs/a/two.py"),
        judge().content(notebook("import tensorflow as tf", "x = '<script>'\ntf.also_gone"), "jobs/a/<b>.ipynb"),
        judge().content(b"def (:\n", "jobs/broken.py"),
    ]


def test_stages_and_folders() -> None:
    assert [stage_of(report) for report in reports()] == [Stage.RUNS, *[Stage.HUMAN] * 3, Stage.UNREADABLE]
    counts = count_by_folder(reports())
    assert {folder: [counts[folder][stage] for stage in Stage] for folder in counts} == {
        ".": [1, 0, 3, 1],
        "jobs": [1, 0, 3, 1],
        "jobs/a": [0, 0, 3, 0],
    }


def test_blockers_are_ordered_by_the_files_that_they_alone_stop() -> None:
    found = [Blocker(one.symbol, one.subject, "", one.findings, one.files, one.freed) for one in find_blockers(reports())]
    assert found == [
        Blocker("tf.gone", "TensorFlow", "", 3, 2, ("jobs/a/one.py",)),
        Blocker("tf.also_gone", "TensorFlow", "", 2, 2, ("jobs/a/<b>.ipynb",)),
    ]


def test_the_page_is_well_formed_offline_and_escaped() -> None:
    page = render_page(reports(), "2.21.0")
    assert "<script" not in page
    shown = read(page).text
    assert "<b>.ipynb" in shown
    text = re.sub(r"\s+", " ", shown)
    assert "1 of 5 files need no human" in text
    assert "line 2 of cell 2: human: tf.also_gone: " in text


def test_with_a_baseline_all_that_stands_stops_files_and_the_new_are_counted() -> None:
    new = [dataclasses.replace(report, findings=report.findings if "two" in report.path else ()) for report in reports()]
    text = re.sub(r"\s+", " ", read(render_page(new, "2.21.0", standing=reports())).text)
    gone = next(one for one in find_blockers(reports()) if one.symbol == "tf.gone")

    assert "findingsnewfilesstopped by" in text
    assert f"tf.gone (TensorFlow){gone.message} 3221" in text
    assert "3 of 5 files have nothing new that needs a human" in text


def test_without_a_baseline_nothing_is_new() -> None:
    assert "findingsfiles" in read(render_page(reports(), "2.21.0", Verdict.HUMAN)).text
