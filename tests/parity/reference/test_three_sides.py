"""The original TensorFlow 1 as a third side: what its interpreter runs, the verdict on three sides, and a real recording."""

from __future__ import annotations

import ast
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from estimator_bridge.cli import main
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity import run
from estimator_bridge.parity.recording import ordering, step_limit
from estimator_bridge.parity.recording.trace import Trace
from estimator_bridge.parity.report.page import render_html
from estimator_bridge.parity.report.summary import render_json
from estimator_bridge.parity.report.terminal import print_report
from estimator_bridge.parity.result import ParityResult
from estimator_bridge.parity.side import Order
from estimator_bridge.script.run import Script
from tests.notebooks import notebook

HERE = Path(__file__).parent
RECORDER = Path(run.__file__).parent / "reference" / "recorder.py"
JOB = str(HERE.parents[1] / "data" / "small_job.py")
Compare = Callable[..., ParityResult]


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compares three sides with stand-ins for their runs, whose losses are given."""

    def compared(losses: Mapping[str, float], draws: str = "dropout") -> ParityResult:
        def run_side(order: Order, watch: object, ahead: object = None) -> float:
            assert (order.recorded, bool(order.python)) == ("reference", order.side == "reference")
            trace = order.trace(order.side)
            trace.make()
            if order.side == "reference":
                trace.write("versions", tensorflow="1.15.5", python="3.7.16")
                trace.write("ordered", names=["global_step"])
            drawn = draws if order.side == "reference" else "dropout"
            trace.write("random", call="train-0", in_step=[drawn], functions=[])
            trace.write("train", call="train-0", max_steps=1)
            trace.write("step", call="train-0", step=1, loss=losses[order.side], batch=1)
            trace.write("trained", call="train-0", model_dir="model", checkpoint=None)
            trace.write("evaluated", call="evaluate-0", name="", metrics={"auc": losses[order.side], "global_step": 1})
            return 1.0

        monkeypatch.setattr(run, "run_side", run_side)
        (tmp_path / "train.py").touch()
        return run.compare(Script(str(tmp_path / "train.py")), reference=sys.executable)

    return compared


def test_three_equal_sides(compare: Compare) -> None:
    result = compare({"reference": 0.5, "legacy": 0.5, "modern": 0.5})

    assert (result.verdict, result.findings) == ("equal", ())
    assert result.reference
    assert (result.reference.losses, result.reference.metrics) == ((0.5,), (0.5,))
    assert list(result.seconds) == ["reference", "legacy", "modern"]
    assert result.notes[0] == "The reference is TensorFlow 1.15.5 on Python 3.7.16; both paths follow its values and batches."
    assert any("the reference side's initial values" in note for note in result.notes)


def test_assignments_that_the_reference_orders_are_named(compare: Compare) -> None:
    (note,) = [note for note in compare({"reference": 0.5, "legacy": 0.5, "modern": 0.5}).notes if "assigns" in note]
    assert note.endswith("in the order of the script's lines: global_step.")


NO_TENSORFLOW = HERE / "recorder_without_tensorflow.py"


def test_the_reference_runs_the_cells_of_a_notebook_and_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The interpreter is a stand-in that has no TensorFlow."""
    monkeypatch.chdir(tmp_path)
    cells = (
        "%matplotlib inline\nimport sys\ndisplay(__name__, sys.argv)",
        "def fail():\n    raise ValueError(__file__)",
        "fail()",
    )
    Path("train.ipynb").write_bytes(notebook(*cells))
    order = Order(
        "reference", str(tmp_path), Script("train.ipynb", ("--steps=5",)), False, 1, recorded="reference", python="old"
    )
    command = run.side_command(order)
    with subprocess.Popen(
        [sys.executable, NO_TENSORFLOW, *command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:  # whose standard input stays open: the recorder ends with it
        assert process.stdout
        printed = process.stdout.read()

    assert (process.returncode, printed) == (1, "__main__ ['train.ipynb', '--steps=5']\n")
    (error,) = Trace(tmp_path / "reference").events("error")
    file = tmp_path / "train.ipynb"
    assert error["lines"] == [
        f"{file}:cell 3:1 in <module>: fail()",
        f"{file}:cell 2:2 in fail: raise ValueError(__file__)",
        f"ValueError: {file}",
    ]


def test_a_notebook_that_fails_on_the_reference_is_exported_by_the_command_of_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *arguments: None)
    notebook_file = tmp_path / "train.ipynb"
    notebook_file.write_bytes(notebook("x = 1"))
    with pytest.raises(BridgeError) as failure:
        run.compare(Script(str(notebook_file)), reference="false")
    export = f"jupyter nbconvert --to script {notebook_file} && false {tmp_path / 'train.py'}"
    assert f"this command shows: {export};" in str(failure.value)


def test_ctrl_c_says_that_the_rest_follows_however_many_sides_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers: list[Callable[[], None]] = []
    monkeypatch.setattr("signal.signal", lambda _, handler: handlers.append(handler))
    run._end_at_interrupt(SimpleNamespace(send_signal=lambda _: None))  # type: ignore[arg-type]
    handlers[0]()
    assert (
        "the recording ends with this step, and the rest of the comparison follows. Ctrl-C again ends it.\n"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_the_recorder_counts_no_step_that_finds_no_batch(tmp_path: Path) -> None:
    """The documented k-means example counts such a step by a race, which both paths take away: so the reference has to, too."""
    script = HERE.parents[1] / "data" / "documented_clusters.py"
    order: dict[str, Any] = {
        "folder": str(tmp_path / "reference"),
        "steps": None,
        "target": str(script),
        "args": [],
        "is_module": False,
        "cells": "",
    }
    command = [sys.executable, str(HERE / "recorder_here.py"), str(RECORDER), json.dumps(order)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        errors = process.stderr.read()
    trace = Trace(tmp_path / "reference")

    assert process.returncode == 0, errors
    assert [event["metrics"]["global_step"] for event in trace.events("evaluated")] == [0, 1, 2]
    assert [event["step"] for event in trace.events("step")] == [1, 2]
    assert [event["names"] for event in trace.events("ordered")] == [["global_step"]] * 3


def test_both_paths_may_agree_and_differ_from_the_reference(compare: Compare) -> None:
    result = compare({"reference": 0.5, "legacy": 0.75, "modern": 0.75})

    assert (result.verdict, result.exit_code) == ("different", 1)
    assert result.findings[0].message == (
        "reference and legacy: The losses differ: reference 0.5, legacy 0.75 (1 of 1 steps outside)."
    )
    assert {finding.message.partition(":")[0] for finding in result.findings} == {
        "reference and legacy",
        "reference and modern",
    }


def test_a_path_that_differs_alone_is_named(compare: Compare) -> None:
    result = compare({"reference": 0.5, "legacy": 0.5, "modern": 0.75})
    assert {finding.message.partition(":")[0] for finding in result.findings} == {"reference and modern", "legacy and modern"}


def test_other_random_operations_are_no_difference(compare: Compare) -> None:
    """Their seeds depend on their names, so the numbers that they draw differ."""
    result = compare({"reference": 0.5, "legacy": 0.75, "modern": 0.75}, draws="dropout_1")

    assert result.verdict == "not comparable"
    assert "other names in the reference" in result.notes[1]
    assert compare({"reference": 0.5, "legacy": 0.5, "modern": 0.75}, draws="dropout_1").verdict == "different"


def test_the_report_has_three_columns(compare: Compare) -> None:
    result = compare({"reference": 0.5, "legacy": 0.75, "modern": 0.875})
    console = Console(width=100, record=True, file=io.StringIO())
    print_report(result, console)
    lines = [line.split()[:6] for line in console.export_text().splitlines()]
    assert ["step", "reference", "legacy", "modern", "abs_diff", "rel_diff"] in lines
    assert ["1", "0.5", "0.75", "0.875", "1.25e-1", "1.43e-1"] in lines
    assert ["auc", "0.5", "0.75", "0.875", "1.25e-1", "1.43e-1"] in lines
    page = render_html(result)
    assert page.count('<th scope="col" class="n">reference</th>') == 2
    assert page.count('<td class="n" data-label="reference">0.5</td>') == 2
    assert json.loads(render_json(result))["reference"]["losses"] == [0.5]


@pytest.mark.parametrize("file", [RECORDER, Path(ordering.__file__), Path(step_limit.__file__)])
def test_the_recorder_is_python_3_6_and_needs_nothing_else(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 6))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) or ""
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert {name.partition(".")[0] for name in imported} - sys.stdlib_module_names <= {"numpy", "tensorflow"}
    assert "__future__" not in imported, "annotations need Python 3.7"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--reference-python", "no-such-python"], "The interpreter of --reference-python cannot be run."),
        (["--reference-python", sys.executable, "--free-run"], "--reference-python replays what the reference recorded."),
        (["--reference-python", sys.executable, "--seeds", "3"], "--reference-python is for a comparison step by step"),
    ],
)
def test_a_reference_that_cannot_be_is_refused(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("signal.signal", lambda *arguments: None)
    (tmp_path / "train.py").touch()
    assert main.main(["compare", "--out", str(tmp_path / "report"), *options, str(tmp_path / "train.py")]) == 2
    assert message in capsys.readouterr().err


def test_a_reference_that_fails_is_told_by_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.signal", lambda *arguments: None)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no module named sklearn >&2\nexit 3\n")
    python.chmod(0o700)

    with pytest.raises(BridgeError, match="could not run") as failure:
        run.compare(Script(JOB, ("--train_steps=5",)), reference=str(python))

    assert "no module named sklearn" in str(failure.value)
    assert f"this command shows: {python} {JOB} --train_steps=5;" in str(failure.value)


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    """Path of an interpreter that is TensorFlow 1.15.5 for the recorder."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "recorder_here.py"} "$@"\n')
    python.chmod(0o700)
    return str(python)


@pytest.mark.slow
def test_a_reference_that_would_fill_the_disk_is_ended(stand_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FREE_BYTES", "50000000")
    with pytest.raises(
        BridgeError, match=r"The reference side: What is recorded would fill the disk: 50 more batches .*--steps N"
    ):
        run.compare(Script(JOB, ("--train_steps=5",)), reference=stand_in)


@pytest.mark.slow
def test_ctrl_c_ends_the_recording_of_a_reference_and_both_paths_follow(stand_in: str, tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    command = ["compare", "--reference-python", stand_in, "--keep", "--record-dir", str(records), JOB, "--train_steps=1000000"]
    with subprocess.Popen(
        [sys.executable, "-m", "estimator_bridge", *command], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 120
        while not any(b'"step": 3,' in path.read_bytes() for path in records.glob("*/reference/events.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=200)

    assert (process.returncode, "the recording ends with this step" in errors) == (0, True), errors
    report = json.loads((tmp_path / "parity-report" / "report.json").read_text())
    assert 3 <= len(report["losses"]) < 1_000_000
    assert len(report["reference"]["losses"]) == len(report["losses"])


@pytest.mark.slow
def test_an_interpreter_with_another_tensorflow_is_refused_by_name() -> None:
    with pytest.raises(
        BridgeError, match=r"The reference is TensorFlow 1\.12 to 1\.15, and this interpreter has TensorFlow 2\."
    ):
        run.compare(Script(JOB), reference=sys.executable)


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_both_paths_train_as_tensorflow_1_did(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "replayed_reference.py"} "$@"\n')
    python.chmod(0o700)

    result = run.compare(Script(JOB, ("--train_steps=5",)), reference=str(python))

    assert result.verdict == "equal", result.findings
    assert result.reference
    assert result.reference.tensorflow == "1.15.5"
    assert len(result.reference.losses) == 5
    assert all(loss for loss in result.reference.losses)
    assert len(result.variables) == 23
    assert all(value is not None and value < 1e-6 for value in result.reference.variables)
    assert {group.name for group in result.predictions} == {"class", "logits"}
