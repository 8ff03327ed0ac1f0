"""The noise floor: a second run of a side, and its differences beside those of the two sides."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from estimator_bridge.parity import run
from estimator_bridge.parity.noise import between_runs, noise_floor
from estimator_bridge.parity.report.page import render_html
from estimator_bridge.parity.report.summary import render_json
from estimator_bridge.parity.report.terminal import print_report
from estimator_bridge.parity.result import LossPoint, MetricPair, ParityResult, Thresholds, VariableDiff
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.side import Order
from estimator_bridge.script.run import Script

NOISY = str(Path(__file__).parents[1] / "data" / "noisy_job.py")
REWRITES = Path(__file__).parents[1] / "data" / "rewrites"
LOSSES = {"legacy": (2.0, 1.0), "modern": (2.0, 1.5), "again": (2.0, 1.625)}


def run_side(order: Order, watch: object, ahead: object = None) -> float:
    """A stand-in for a side's run, which writes losses, a metric and predictions."""
    trace = order.trace(order.side)
    trace.make()
    trace.write("train", call="train-0", max_steps=2)
    for step, loss in enumerate(LOSSES[order.side], 1):
        trace.write("step", call="train-0", step=step, loss=loss, batch=step)
    trace.write("trained", call="train-0", model_dir="model", checkpoint=None)
    trace.write("evaluated", call="evaluate-0", name="", metrics={"auc": sum(LOSSES[order.side]), "global_step": 2})
    np.savez(trace.predictions("predict-0"), **{"key:p": np.array(LOSSES[order.side])})
    trace.write("predicted", call="predict-0")
    return 7.0


@pytest.fixture
def noisy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> ParityResult:
    """A comparison whose modern side ran twice, which it says first."""
    (tmp_path / "train.py").touch()
    monkeypatch.setattr(run, "run_side", run_side)
    result = run.compare(Script(str(tmp_path / "train.py")), noise=True)
    assert capsys.readouterr().err == "estimator-bridge: --noise runs the modern side once more; its first run took 7 s.\n"
    return result


def test_the_noise_is_the_difference_of_two_runs(noisy: ParityResult) -> None:
    assert noisy.noise
    assert noisy.noise.side == "modern"
    assert (noisy.noise.losses, noisy.noise.metrics, noisy.noise.predictions) == ((0.0, 0.125), (0.125,), (0.125,))
    assert noisy.verdict == "different", "the noise does not decide"
    assert noisy.seconds == {"legacy": 7.0, "modern": 7.0, "again": 7.0}


def test_the_noise_stands_beside_each_difference(noisy: ParityResult) -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    print_report(noisy, console)
    table = [line.split()[:6] for line in console.export_text().splitlines()]
    assert ["step", "legacy", "modern", "abs_diff", "rel_diff", "noise"] in table
    assert ["2", "1", "1.5", "5.00e-1", "3.33e-1", "1.25e-1"] in table
    assert ["auc", "3", "3.5", "5.00e-1", "1.43e-1", "1.25e-1"] in table
    assert ["predict-0/p", "5.00e-1", "1.25e-1", "outside"] in table
    page = render_html(noisy)
    assert page.count(">noise</th>") == 3, "losses, metrics and predictions"
    assert page.count('<td class="n" data-label="noise">1.25e-1</td>') == 3
    assert json.loads(render_json(noisy))["noise"]["losses"] == [0.0, 0.125]


def test_what_a_second_run_lacks_is_unknown() -> None:
    result = ParityResult(
        (),
        "replay",
        "equal",
        Thresholds(),
        losses=(LossPoint(1, 1.0, math.nan), LossPoint(1, 1.0, 2.0), LossPoint(2, 1.0, 3.0)),
        metrics=(MetricPair("", 1, "auc", 0.5, 0.5), MetricPair("", 1, "auc", 0.5, 0.75)),
        variables=(VariableDiff("kernel", (2,), 0.5),),
    )
    again = ParityResult(
        (),
        "replay",
        "equal",
        Thresholds(),
        losses=(LossPoint(1, 1.0, math.nan), LossPoint(1, 1.0, 2.5)),
        metrics=(MetricPair("", 1, "auc", 0.5, 0.5),),
    )

    noise = noise_floor("new", result, between_runs(result, again))

    assert noise.losses == (0.0, 0.5, None), "two trainings may both have a step 1"
    assert noise.metrics == (0.0, None)
    assert noise.variables == (None,)


@pytest.mark.slow
def test_a_script_that_draws_without_a_seed_has_noise() -> None:
    result = run.compare(Script(NOISY), noise=True)

    assert result.noise
    assert max(value or 0.0 for value in result.noise.losses) > 1e-3
    assert all(result.noise.losses), "each loss draws"


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_a_rewrite_is_compared_with_itself() -> None:
    """Both of its runs get the old values and batches, and draw the same dropout."""
    plan = RewritePlan(Script(str(REWRITES / "mlp_new.py")))
    result = run.compare_rewrite(Script(str(REWRITES / "mlp_old.py")), plan, noise=True)

    assert result.verdict == "equal", result.findings
    assert result.noise
    assert (result.noise.side, len(result.noise.losses)) == ("new", 24)
    assert not any(result.noise.losses)
    assert len(result.noise.variables) == len(result.variables) > 4
    assert set(result.noise.variables) == {0.0}
    assert result.noise.predictions == (0.0,)
    assert set(result.seconds) == {"legacy", "new", "free", "alone", "again"}
