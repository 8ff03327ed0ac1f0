"""Whole comparisons of a small script in real processes: equal sides are found equal, and faults are found and named.

Faults are planted by these tests, so one TensorFlow suffices for them; equality of a whole script is tested on each.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.parallel.plans.plan import ParallelPlan
from estimator_bridge.parity import run
from estimator_bridge.parity.result import ParityResult, rel_diff
from estimator_bridge.parity.rewrite.plan import RewritePlan
from estimator_bridge.parity.run import Recordings
from estimator_bridge.parity.side import Order
from estimator_bridge.script.run import Script

HERE = Path(__file__).parent
JOB = str(HERE.parent / "data" / "small_job.py")

REPEATED = str(HERE.parent / "data" / "repeated_trainings.py")
RECURRENT = str(HERE.parent / "data" / "recurrent.py")

Broken = Callable[[str], ParityResult]


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for comparisons that all have the first one's legacy side."""
    return tmp_path_factory.mktemp("sides")


@pytest.fixture
def compare_broken(shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Broken:
    """Compares with a modern path that has a fault; the legacy side, which has ended, does not run again."""

    def command(fault: str, order: Order) -> list[str]:
        return [sys.executable, str(HERE / "broken_side.py"), fault, json.dumps(dataclasses.asdict(order))]

    def compare(fault: str) -> ParityResult:
        monkeypatch.setattr(run, "side_command", functools.partial(command, fault))
        return run.compare(Script(JOB, ("--train_steps=12",)))

    shutil.rmtree(shared_folder / "modern", ignore_errors=True)
    monkeypatch.setattr(run.Recordings, "folder", lambda recordings: contextlib.nullcontext(str(shared_folder)))
    return compare


def levels(result: ParityResult) -> list[str]:
    return [finding.level for finding in result.findings]


def test_a_job_with_dropout_and_batch_norm_is_equal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "estimator_bridge", "compare", "--out", str(tmp_path / "report"), JOB, "--train_steps=40"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("EQUAL")
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report["verdict"] == "equal"
    assert [point["step"] for point in report["losses"]] == list(range(1, 41))
    assert report["losses"][0]["legacy"] > 1.5 * report["losses"][-1]["legacy"], "it learns, so equal curves mean something"
    assert {(pair["metric"], pair["step"]) for pair in report["metrics"]} == {("accuracy", 40), ("loss", 40)}
    names = {variable["name"] for variable in report["variables"]}
    assert {"hidden/kernel", "hidden/kernel/Adam", "hidden/kernel/Adam_1", "beta1_power", "norm/moving_mean"} <= names
    assert "<svg" in (tmp_path / "report" / "report.html").read_text()


FOUR = ParallelPlan(micro=4)


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(
    "loop",
    [
        "bidirectional",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("output", "input and state", "variational", "one at a time", "ten at a time")
        ),
    ],
)
def test_dropout_in_loops_and_branches_is_equal(loop: str) -> None:
    """Without TensorFlow's arithmetic optimizer, which rounds the two graphs of variational dropout otherwise (by 9e-8)."""
    result = run.compare(Script(RECURRENT, (loop,)))

    assert result.verdict == "equal", result.findings
    assert len({point.legacy for point in result.losses}) == 12, "it trains"
    assert [point.legacy for point in result.losses] == [point.modern for point in result.losses]


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(
    "parts", [{}, *(pytest.param(one, marks=pytest.mark.slow) for one in ({"parallel": FOUR}, {"replicas": 2}))]
)
def test_hooks_initialise_the_iterators_of_an_input_that_is_replayed(parts: dict[str, Any]) -> None:
    """They hold tensors of the script's own input, which the modern side replaces by recorded batches."""
    result = run.compare(Script(str(HERE.parent / "data" / "initialised_by_a_hook.py")), **parts)

    assert result.verdict == "equal", result.findings
    assert len(result.losses) == 8


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_predictions_that_a_script_leaves_open_are_no_difference() -> None:
    result = run.compare(Script(str(HERE.parent / "data" / "open_predictions.py")))

    assert result.verdict == "equal", result.findings
    assert sorted(group.call for group in result.predictions) == ["predict-0", "predict-1"]
    assert len(result.losses) == 10


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_centers_that_are_chosen_in_a_training_without_a_step_are_kept() -> None:
    result = run.compare(Script(str(HERE.parent / "data" / "documented_clusters.py")))

    assert result.verdict == "equal", result.findings
    assert [point.step for point in result.losses] == [1, 2]
    assert {pair.step for pair in result.metrics if pair.metric == "score"} == {0, 1, 2}


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("dropped", ["0", "0.5"])
def test_replicas_of_the_script_get_their_own_batches_and_masks_on_both_sides(dropped: str, tmp_path: Path) -> None:
    result = run.compare(
        Script(str(HERE.parent / "data" / "mirrored_replicas.py"), ("6", dropped)), recordings=Recordings(tmp_path, True)
    )

    assert result.verdict == "equal", result.findings
    assert [point.step for point in result.losses] == [1, 2, 3, 4, 5, 6]
    assert max(rel_diff(point.legacy, point.modern) for point in result.losses[:5]) <= 1e-6
    (batches,) = tmp_path.glob("*/legacy/batches/train-0*")
    assert len(list(tf.data.TFRecordDataset(str(batches)))) == 12, "two replicas, each with 8 of 16 rows"


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("dropped", ["0.5:seeded", "0.5:keras"])
def test_replicas_that_draw_by_seeds_or_names_of_their_own_are_not_comparable(dropped: str) -> None:
    result = run.compare(Script(str(HERE.parent / "data" / "mirrored_replicas.py"), ("6", dropped)))

    assert result.verdict == "not comparable", result.findings
    assert any("draws for itself" in note for note in result.notes)


@pytest.mark.slow
@pytest.mark.timeout(200)  # it waits without end for a file that is elsewhere
@pytest.mark.usefixtures("warm_python")
def test_each_checkpoint_that_a_script_finds_is_evaluated(tmp_path: Path) -> None:
    result = run.compare(Script(str(HERE.parent / "data" / "sweeps_checkpoints.py"), (str(tmp_path / "model"),)))

    assert result.verdict == "equal", result.findings
    assert [(pair.evaluation, pair.step) for pair in result.metrics] == [("0", 0), ("2", 2), ("4", 4), ("6", 6)]


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("devices", [("/cpu:0",), ("/cpu:0", "/cpu:1", "/cpu:2", "/cpu:3")], ids=len)
def test_one_device_of_a_strategy_and_four_train_alike(devices: tuple[str, ...]) -> None:
    result = run.compare(Script(str(HERE.parent / "data" / "mirrored_replicas.py"), ("6", "0", *devices)))

    assert result.verdict == "equal", result.findings
    assert max(rel_diff(point.legacy, point.modern) for point in result.losses[:5]) <= 1e-6


@pytest.mark.usefixtures("warm_python")
def test_a_free_run_draws_the_same_shuffle_and_dropout() -> None:
    result = run.compare(Script(JOB, ("--train_steps=12",)), replaying=False)

    assert result.verdict == "equal", result.findings
    assert result.mode == "free-run"


@pytest.mark.usefixtures("warm_python")
def test_two_replicas_without_dropout_are_equal_up_to_batch_norm() -> None:
    """Each replica normalises its own half of the batch, so the curves differ: that is found, not smoothed over."""
    result = run.compare(Script(JOB, ("--train_steps=6", "--dropout=0")), replicas=2)

    assert result.verdict == "different"
    assert "batch" not in levels(result), "the batches are the same ones"


@pytest.mark.once
@pytest.mark.usefixtures("warm_python")
def test_dropout_on_two_replicas_is_not_comparable() -> None:
    result = run.compare(Script(JOB, ("--train_steps=6",)), replicas=2)

    assert result.exit_code == 2
    assert any("which each worker or part of a batch draws for itself" in note for note in result.notes)


@pytest.mark.once
@pytest.mark.usefixtures("warm_python")
def test_a_higher_learning_rate_is_named_by_the_ratio_of_the_updates(compare_broken: Broken) -> None:
    result = compare_broken("learning rate")

    assert result.exit_code == 1
    first = result.findings[0]
    assert (first.level, first.step) == ("first update", 1)
    assert "x1.1" in first.message
    assert "batch" not in levels(result)
    assert "initial values" not in levels(result)
    assert next(finding.step for finding in result.findings if finding.level == "loss") == 2


@pytest.mark.once
@pytest.mark.usefixtures("warm_python")
def test_a_variable_that_is_not_updated_is_named(compare_broken: Broken) -> None:
    result = compare_broken("variable")

    assert result.exit_code == 1
    first = result.findings[0]
    assert (first.level, first.step) == ("first update", 1)
    assert "does not update hidden/bias" in first.message
    assert "kernel" not in first.message


@pytest.mark.once
@pytest.mark.usefixtures("warm_python")
def test_a_batch_that_is_skipped_is_named_by_its_step(compare_broken: Broken) -> None:
    result = compare_broken("batch")

    assert result.exit_code == 1
    first = result.findings[0]
    assert (first.level, first.step) == ("batch", 7)
    assert "legacy trained on at step 8" in first.message
    assert "first update" not in levels(result)


@pytest.mark.once
@pytest.mark.usefixtures("warm_python")
def test_the_same_processes_without_a_fault_are_equal(compare_broken: Broken) -> None:
    assert compare_broken("none").verdict == "equal"


@pytest.mark.usefixtures("warm_python")
def test_the_scripts_model_dir_is_read_and_not_written(tmp_path: Path) -> None:
    trained = subprocess.run(
        [sys.executable, "-m", "estimator_bridge", "run", JOB, "--train_steps=5", f"--model_dir={tmp_path}"],
        capture_output=True,
        check=False,
    )
    assert trained.returncode == 0, trained.stderr
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    result = run.compare(Script(JOB, ("--train_steps=9", f"--model_dir={tmp_path}")))

    assert result.verdict == "equal", result.findings
    assert [point.step for point in result.losses] == [6, 7, 8, 9], "both sides go on from the script's checkpoint"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.once
@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(("fail", "code"), [("before", 1), ("after", 3)])
def test_a_script_that_fails_is_not_compared(fail: str, code: int, tmp_path: Path) -> None:
    out = tmp_path / "report"
    options = ["--out", str(out), "--keep", "--record-dir", str(tmp_path)]
    command = [sys.executable, "-m", "estimator_bridge", "compare", *options, JOB, "--train_steps=2", f"--fail={fail}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert f"exit code {code}" in done.stderr
    assert "Traceback" not in done.stderr.partition("received:")[0]
    report = json.loads((out / "report.json").read_text())
    assert report["verdict"] == "not comparable"
    assert f"exit code {code}" in report["findings"][0]["message"]
    assert "or read legacy.log in the folder that --keep names." in done.stderr
    (log,) = tmp_path.glob("estimator-bridge-*/legacy.log")
    assert f"stays in {log.parent}" in done.stderr
    assert ("asked to fail" in log.read_text()) is (fail == "before")
    if fail == "before":
        lines = [line.strip() for line in done.stderr.partition("it ended with\n")[2].splitlines() if line.strip()][:3]
        assert [re.sub(r".*/(small_job.py):[0-9]+", r"\1", line) for line in lines] == [
            "small_job.py in <module>: tf.app.run()",
            'small_job.py in main: raise RuntimeError("asked to fail")',
            "RuntimeError: asked to fail",
        ]


@pytest.mark.once
@pytest.mark.usefixtures("warm_python")
def test_the_first_steps_of_a_loop_of_trainings_are_compared() -> None:
    result = run.compare(Script(REPEATED), steps=7)

    assert result.verdict == "equal", result.findings
    assert [point.step for point in result.losses] == [1, 2, 3, 4, 5, 6, 7], "of trainings of 3 steps"
    assert sorted({pair.step for pair in result.metrics}) == [3, 6, 7], "the evaluation after the last step, too"
    assert any(note.startswith("Only the first 7 training steps were compared") for note in result.notes)


@contextlib.contextmanager
def long_comparison(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Yields a comparison whose recording has taken three of a million steps, and the folder of its recordings."""
    records = folder / "records"
    records.mkdir()
    command = [sys.executable, "-m", "estimator_bridge", "compare", "--keep", "--record-dir", str(records), JOB]
    process = subprocess.Popen([*command, "--train_steps=1000000"], cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        _until(lambda: any(b'"step": 3,' in path.read_bytes() for path in records.glob("*/legacy/events.jsonl")), seconds=90)
        yield process, records
    finally:
        process.kill()
        process.wait(timeout=10)


@pytest.mark.once
def test_ctrl_c_ends_the_recording_and_the_other_side_follows(tmp_path: Path) -> None:
    with long_comparison(tmp_path) as (process, records):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)

    assert (process.returncode, "the recording ends with this step" in errors) == (0, True), errors
    report = json.loads((tmp_path / "parity-report" / "report.json").read_text())
    (recorded,) = records.glob("*/legacy/events.jsonl")
    steps = [event["step"] for event in map(json.loads, recorded.read_text().splitlines()) if event["event"] == "step"]
    assert [point["step"] for point in report["losses"]] == steps
    assert (recorded.parents[1] / "modern.log").is_file()


@pytest.mark.slow
@pytest.mark.once
def test_a_second_ctrl_c_ends_the_comparison(tmp_path: Path) -> None:
    import psutil

    with long_comparison(tmp_path) as (process, _):
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert any("the rest of the comparison follows" in line for line in process.stderr)  # two signals at once count as one
        children += psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    report = json.loads((tmp_path / "parity-report" / "report.json").read_text())
    assert (process.returncode, report["verdict"]) == (130, "not comparable")
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.once
def test_ctrl_c_ends_the_recording_for_a_rewrite_too(tmp_path: Path) -> None:
    script = Script(JOB, ("--train_steps=1000000",))
    order = Order("legacy", str(tmp_path), script, True, 1, RewritePlan(Script(JOB), anchor=10**6))
    trace = order.trace("legacy")
    process = run.Ahead().take(order)
    try:
        _until(lambda: any(b'"step": 4,' in path.read_bytes() for path in tmp_path.glob("legacy/events.jsonl")), seconds=90)
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)
    finally:
        process.kill()
        process.wait(timeout=10)

    assert code == 0, (tmp_path / "legacy.log").read_text()
    assert [event["steps"] for event in trace.events("limited")] == [len(list(trace.events("step")))]


@pytest.mark.once
@pytest.mark.usefixtures("warm_python")
def test_a_script_without_an_estimator_is_not_compared(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("import tensorflow as tf\nprint(tf.constant(1))\n")

    with pytest.raises(BridgeError, match="called no Estimator"):
        run.compare(Script(str(script)))


@pytest.mark.once
def test_a_side_ends_when_the_comparison_is_killed(tmp_path: Path) -> None:
    import psutil

    script = Path(__file__).parents[1] / "data" / "sleeper.py"
    process = subprocess.Popen([sys.executable, "-m", "estimator_bridge", "compare", str(script)], cwd=tmp_path)
    try:
        _until((tmp_path / "started").exists, seconds=60)
        (side,) = psutil.Process(process.pid).children()
    finally:
        process.kill()
        process.wait(timeout=10)
    side.wait(timeout=10)


def _until(condition: object, seconds: float) -> None:
    import time

    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)
