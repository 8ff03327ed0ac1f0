"""Comparisons by final metrics over several seeds: what is tested, when nothing is decided, and how it is told."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from estimator_bridge.cli import main
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity import seeds as seeds_module
from estimator_bridge.parity.clusters.plan import ClusterPlan
from estimator_bridge.parity.recording.randomness import SEED
from estimator_bridge.parity.report.junit import render_junit
from estimator_bridge.parity.report.markdown import render_markdown
from estimator_bridge.parity.report.page import render_html
from estimator_bridge.parity.report.terminal import print_report
from estimator_bridge.parity.result import ParityResult
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.seeds import compare_seeds
from estimator_bridge.parity.side import Order
from estimator_bridge.script.run import Script

DATA = Path(__file__).parents[1] / "data"
Metric = Callable[[str, int], dict[str, float]]
Compare = Callable[..., ParityResult]


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compares with stand-ins for the runs, whose metrics a function of side and seed gives."""

    def compared(metrics: Metric, **options: object) -> ParityResult:
        def run_side(order: Order, watch: object, ahead: object = None) -> float:
            assert order.seed
            trace = order.trace(order.side)
            trace.make()
            trace.write("evaluated", call="evaluate-0", name="early", metrics={"auc": -1.0, "global_step": 0})
            values = metrics(order.side, order.seed - SEED)
            for name in ("early", "late") if order.side != "new" else ("",):
                trace.write("evaluated", call="evaluate-1", name=name, metrics=values | {"global_step": 9})
            return 2.0

        monkeypatch.setattr(seeds_module, "run_side", run_side)
        (tmp_path / "train.py").touch()
        return compare_seeds(Script(str(tmp_path / "train.py")), seeds=5, **options)  # type: ignore[arg-type]

    return compared


def close(side: str, seed: int) -> dict[str, float]:
    return {"auc": 0.9 + seed / 1000 + (seed % 2) / 10_000 * (side != "legacy"), "loss": 0.3 + seed / 100}


def apart(side: str, seed: int) -> dict[str, float]:
    return close(side, seed) | {"loss": (0.3 + seed / 100) * (1 if side == "legacy" else 1.1)}


def scattered(side: str, seed: int) -> dict[str, float]:
    return {"auc": 0.9 + (seed if side == "legacy" else 6 - seed) / 100}


def constant(side: str, seed: int) -> dict[str, float]:
    return {"auc": 0.9 + (seed / 1000 if side == "legacy" else 0)}


def test_close_metrics_are_equivalent(compare: Compare, capsys: pytest.CaptureFixture[str]) -> None:
    result = compare(close)

    assert (result.verdict, result.exit_code, result.findings, result.mode) == ("equivalent", 0, (), "seeds")
    tested = {(test.evaluation, test.metric): test for test in result.equivalence}
    assert set(tested) == {(name, metric) for name in ("early", "late") for metric in ("auc", "loss")}
    auc = tested["early", "auc"]
    assert auc.legacy == (0.901, 0.902, 0.903, 0.904, 0.905), "the last value of each name, in the order of the seeds"
    assert auc.difference == pytest.approx(0.00006)
    assert auc.margin == pytest.approx(0.00903)
    assert result.seconds == {"legacy": 10.0, "modern": 10.0}
    said = capsys.readouterr().err
    assert "--seeds 5 trains each side 5 times." in said
    assert "--seeds trains with 4 more seeds, which may take 16 s." in said
    assert "95% confidence; the margin is 0.01 times the mean of the legacy side" in result.notes[1]


def test_one_metric_of_several_that_differs_is_enough(compare: Compare) -> None:
    result = compare(apart)
    assert (result.verdict, result.exit_code) == ("not equivalent", 1)
    assert "loss of evaluation 'early': not equivalent; mean difference 0.033" in result.findings[0].message
    assert compare(apart, margin=0.2).verdict == "equivalent"


def test_scattered_metrics_decide_nothing(compare: Compare) -> None:
    result = compare(scattered)
    assert (result.verdict, result.exit_code) == ("not decided", 2)
    assert result.findings[0].message.endswith("More seeds narrow the interval.")


def test_a_side_that_gives_the_same_bits_each_time_sets_its_own_seed(compare: Compare) -> None:
    result = compare(constant, margin=1.0)
    assert (result.verdict, result.exit_code) == ("not decided", 2)
    assert result.findings[0].message.startswith("All 5 runs of the modern side give the same metrics to the last bit")


def test_a_metric_of_one_run_alone_decides_nothing(compare: Compare) -> None:
    def metrics(side: str, seed: int) -> dict[str, float]:
        return close(side, seed) | ({"f1": 0.5} if seed == 2 else {})

    result = compare(metrics)
    assert result.verdict == "not decided"
    assert result.findings[0].message == "f1 of evaluation 'early' is not given by every run of both sides."


def test_a_rewrite_is_compared_by_the_last_evaluation(compare: Compare, tmp_path: Path) -> None:
    def metrics(side: str, seed: int) -> dict[str, float]:
        return close(side, seed) | ({"average_loss": 0.1} if side == "legacy" else {})

    (tmp_path / "new.py").touch()
    result = compare(metrics, plan=RewritePlan(Script(str(tmp_path / "new.py"))))

    assert (result.verdict, result.sides) == ("equivalent", ("old", "new"))
    assert [(test.evaluation, test.metric) for test in result.equivalence] == [("", "auc"), ("", "loss")]
    assert result.notes[-1] == "Only one side gives average_loss of evaluation 'eval'."


def test_a_script_that_evaluates_nothing_is_refused(compare: Compare) -> None:
    with pytest.raises(BridgeError, match="The legacy side evaluated nothing"):
        compare(lambda side, seed: {}, plan=RewritePlan(Script(__file__)))


@pytest.mark.parametrize("metrics", [close, apart, scattered, constant])
def test_every_outcome_is_shown(metrics: Metric, compare: Compare) -> None:
    result = compare(metrics)
    console = Console(width=100, record=True, file=io.StringIO())
    print_report(result, console)
    text = console.export_text()
    assert text.startswith(f"{result.verdict.upper()}. ")
    assert "90 % interval" in text
    page = render_html(result)
    assert f"<h1>{result.verdict.capitalize()}</h1>" in page
    assert "90 % interval" in page
    assert "Loss of each step" not in page
    assert f"**{result.verdict.upper()}**" in render_markdown(result)
    suite = next(ET.fromstring(render_junit(result)).iter("testsuite"))
    assert (suite.attrib["failures"] != "0", suite.attrib["errors"] != "0") == (result.exit_code == 1, result.exit_code == 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--margin", "0.1"], "--margin is for --seeds."),
        (["--seeds", "5", "--steps", "3"], "--steps is for a comparison step by step"),
        (["--seeds", "5", "--noise"], "--noise is for a comparison step by step"),
        (["--stall-timeout", "9"], "--stall-timeout is for a cluster."),
        (["--worker", "1", "--replicas", "2"], "--replicas is for one process"),
        (["--worker", "-1"], "expected a whole number from 0 to 1000"),
        (["--ps", "1", "--noise"], "--noise is for scripts of one process."),
        (["--seeds", "2"], "expected a whole number of 3 or more"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").touch()
    command = ["compare", "--out", str(tmp_path / "report"), *options, str(tmp_path / "train.py")]
    try:
        code = main.main(command)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_cluster_in_tf_config_is_refused_with_the_tasks_to_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").touch()
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))

    assert main.main(["compare", "--out", str(tmp_path / "report"), str(tmp_path / "train.py")]) == 2

    assert "Unset TF_CONFIG, and add --worker 2 --ps 1." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_rewrite_and_a_cluster_are_compared_by_final_metrics_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old.py", "new.py"):
        (tmp_path / name).touch()
    out = ["--out", str(tmp_path / "report")]

    assert main.main(["compare", *out, "--worker", "1", str(tmp_path / "old.py"), str(tmp_path / "new.py")]) == 2

    assert "Add --seeds 5." in capsys.readouterr().err


def test_only_the_old_script_of_a_rewrite_runs_as_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ClusterPlan({"chief": 1, "worker": 1, "ps": 1, "evaluator": 1})
    ran: list[tuple[str, ClusterPlan | None]] = []

    def run_side(order: Order, watch: object, ahead: object = None) -> float:
        ran.append((order.side, order.cluster))
        chief, *_, evaluator, _ = order.traces(order.side) if order.cluster else [order.trace(order.side)] * 3
        for trace, step, loss in ((evaluator, 9, 0.3 + (order.seed or 0) % 10 / 1000), (chief, 4, 0.7)):
            trace.make()
            if order.cluster or step == 9:
                trace.write("evaluated", call="evaluate-0", name="", metrics={"loss": loss, "global_step": step})
        return 2.0

    monkeypatch.setattr(seeds_module, "run_side", run_side)
    for name in ("old.py", "new.py"):
        (tmp_path / name).touch()
    rewrite = RewritePlan(Script(str(tmp_path / "new.py")))
    result = compare_seeds(Script(str(tmp_path / "old.py")), rewrite, seeds=3, cluster=plan)

    assert ran == [("legacy", plan), ("new", None)] * 3
    assert result.verdict == "equivalent", "of the tasks' evaluations, that of the last step counts"
    assert result.notes[-1] == "The old script ran as a cluster on this machine: 1 chief, 1 worker, 1 ps, 1 evaluator."


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_seeds_reach_both_paths_of_a_real_script() -> None:
    result = compare_seeds(Script(str(DATA / "small_job.py"), ("--train_steps=20",)), seeds=3)

    assert result.verdict == "equivalent", result.findings
    for test in result.equivalence:
        assert len(set(test.legacy)) == len(set(test.modern)) == 3
        assert test.legacy == test.modern, "both paths draw the same numbers for the same seed"


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_a_script_with_its_own_seed_decides_nothing() -> None:
    result = compare_seeds(Script(str(DATA / "own_seed.py")), seeds=3)

    assert result.verdict == "not decided"
    assert [finding.message.partition(" side ")[0] for finding in result.findings[:2]] == [
        "All 3 runs of the legacy",
        "All 3 runs of the modern",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("keras", ["tf_keras", "keras"])
def test_a_rewrite_trains_freely_in_either_keras(keras: str, tmp_path: Path) -> None:
    new = tmp_path / "new.py"
    source = (DATA / "rewrites" / "mlp_new.py").read_text()
    new.write_text(source.replace("import tf_keras as keras", f"import {keras} as keras"))

    result = compare_seeds(Script(str(DATA / "rewrites" / "mlp_old.py")), RewritePlan(Script(str(new))), seeds=3, margin=2.0)

    assert result.verdict == "equivalent", result.findings
    assert {test.metric for test in result.equivalence} == {"loss", "accuracy"}
    for test in result.equivalence:
        assert len(set(test.modern)) > 1
