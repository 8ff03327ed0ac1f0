"""The page of a conversion."""

from __future__ import annotations

import re

from estimator_bridge.compat.source.fixers.conversion import convert
from estimator_bridge.compat.source.fixers.marks import Outcome
from estimator_bridge.compat.source.reading import read_source
from estimator_bridge.compat.source.reports.conversion import converted_file, render_conversions
from tests.compat.source.reports.pages import read
from tests.notebooks import notebook
from tests.running import ROOT

PATH = ROOT / "tests" / "data" / "to_keras" / "for_humans.py"


def test_the_page_has_every_line_and_every_message() -> None:
    content = PATH.read_bytes() + b"x = '<script>'  # of the script\n"
    source = read_source(content, "<b>.py")
    conversion = convert(source.text)
    page = render_conversions([(source, conversion)])
    assert "<script" not in page
    shown = read(page).text
    assert "0 of 1 files need no human" in shown
    assert "<b>.py" in shown
    assert all(line.strip() in shown for line in (*source.text.splitlines(), *conversion.text.splitlines()))
    human = [change for change in conversion.changes if change.outcome is Outcome.HUMAN]
    assert human
    assert all(change.message in shown for change in conversion.changes)
    assert f"{len(human)} human" in re.sub(r"\s+", " ", shown)


def test_a_line_has_the_outcome_that_needs_most_attention() -> None:
    source = read_source(b"import tensorflow as tf\nx = tf.contrib.a(tf.estimator.RunConfig())\ny = 1\n", "train.py")
    lines = converted_file(source, convert(source.text)).lines
    assert [line.outcome for line in lines] == [None, Outcome.HUMAN, None]


def test_lines_of_a_notebook_have_the_numbers_of_their_cells() -> None:
    source = read_source(notebook("import tensorflow as tf", "x = 1\ntf.estimator.RunConfig()"), "a.ipynb")
    places = [line.place for line in converted_file(source, convert(source.text)).lines if line.text.strip()]
    assert places == ["1 of cell 1", "1 of cell 2", "2 of cell 2"]
