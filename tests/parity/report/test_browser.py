"""The page in a real browser: pictures of each kind, in which nothing is cut off."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from estimator_bridge.parity.report.page import render_html
from estimator_bridge.parity.result import MetricPair, NoiseFloor, ParityResult, ReferenceValues
from tests.parity.report import browser


@pytest.fixture
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The page of a run with all columns, curves of a metric and a long name."""
    run: ParityResult = request.getfixturevalue(request.param)
    metrics = tuple(MetricPair("eval", step, "accuracy", 0.5 + step / 500, 0.5 + step / 500) for step in (10, 30, 50))
    run = dataclasses.replace(
        run, metrics=(*metrics, *run.metrics), environment={"repeat": "cd /somewhere && " + "long-name" * 20}
    )
    values = {kind: (0.25,) * len(getattr(run, kind)) for kind in ("losses", "metrics", "variables")}
    path = tmp_path / f"{request.param}.html"
    run = dataclasses.replace(run, noise=NoiseFloor("modern", **values), reference=ReferenceValues("1.15.5", "3.7", **values))
    path.write_text(render_html(run), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.skipif(browser.CHROMIUM is None, reason="there is no Chromium on this machine")
@pytest.mark.parametrize("page", ["equal_run", "different_run", "rewritten_run"], indirect=True)
def test_pictures_of_a_report_in_which_nothing_is_cut_off(page: Path) -> None:
    for kind in ("light", "dark", "print"):
        assert browser.picture(page, kind, page.with_name(kind)).stat().st_size > 20_000
    assert page.with_name("light.png").read_bytes() != page.with_name("dark.png").read_bytes()
    browser.phone(page, page.with_name("phone"))
    assert browser.cut_off(page, (1200, 1000, 900, 800, 700, 600, 500, 390, 360)) == []
    printed = page.with_name("as-printed.html")
    printed.write_text(
        page.read_text(encoding="utf-8").replace("@media print", "@media all").replace("@media screen", "@media not all")
    )
    assert browser.cut_off(printed, (717,)) == []  # A4 without the margins that browsers leave
