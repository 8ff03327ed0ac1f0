"""Scripts that cannot be compared: the messages of compare, its report, and nothing else left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from estimator_bridge.cli import main
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity import run
from estimator_bridge.parity.report.write import write_report
from estimator_bridge.parity.result import ParityResult, Thresholds
from estimator_bridge.parity.side import Order
from tests.running import estimator_bridge_command, write

pytestmark = [pytest.mark.usefixtures("warm_python")]

SCRIPTS = {
    "raises": (
        (Path(__file__).parents[1] / "data" / "raises_no_data.py").read_text(),
        "ValueError: no data",
        "code 1",
    ),
    "exits": ("import sys\nsys.exit(3)", "exit code 3", "--path legacy"),
    "refused": ("import tensorflow as tf\ntf.contrib.bayesflow.monte_carlo", "tf.contrib.bayesflow.monte_carlo", "train.py:2"),
    "syntax": ("x = 1\nprint 'two'\n", "train.py, line 2: Python cannot read this: Missing parentheses", "--py2 is for"),
    "plain": ("import tensorflow as tf\nprint(tf.placeholder(tf.float32))", "called no Estimator", "Estimator"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_cannot_be_compared(name: str, tmp_path: Path) -> None:
    source, *messages = SCRIPTS[name]
    write(tmp_path / "train.py", source)
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    ended = estimator_bridge_command("compare", "train.py", cwd=tmp_path, TMPDIR=str(temporary))

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("estimator-bridge: ")
    for message in messages:
        assert message in ended.err
    assert "estimator_bridge/" not in ended.err, "no frames of ours"
    left = [path for path in tmp_path.rglob("*") if path.name not in ("train.py", "tmp") and "__pycache__" not in path.parts]
    assert not [path for path in left if "estimator-bridge" in path.name], left
    finding = failed_report(tmp_path / "parity-report")
    for message in messages:
        assert message in finding


def failed_report(folder: Path) -> str:
    """Returns the reason of a report that says, in both files and nothing else, that there was no comparison."""
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json"]
    report = json.loads((folder / "report.json").read_text())
    assert (report["verdict"], report["exit_code"], len(report["findings"])) == ("not comparable", 2, 1)
    assert "<title>Not comparable" in (folder / "report.html").read_text()
    return str(report["findings"][0]["message"])


@pytest.fixture
def old_report(tmp_path: Path) -> Path:
    folder = tmp_path / "report"
    write_report(ParityResult(("train.py",), "replay", "equal", Thresholds()), folder)
    return folder


def run_failing(error: BaseException, seen: Callable[[], object]) -> Callable[..., float]:
    """Returns a stand-in for a side's run: the legacy side trains, the modern one fails after ``seen`` was called."""

    def run_side(order: Order, watch: object, ahead: object = None) -> float:
        if order.side == "modern":
            seen()
            raise error
        return 1.0

    return run_side


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BridgeError("The modern side: a hook.", fix="Drop it."), "The modern side: a hook.\n  to do:    Drop it."),
        (KeyboardInterrupt(), "interrupted before it ended"),
        (SystemExit(143), "interrupted before it ended"),
        (RuntimeError("no memory"), "RuntimeError: no memory"),
    ],
)
def test_an_old_report_does_not_outlive_a_failure_of_the_modern_side(
    error: BaseException,
    reason: str,
    old_report: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.setattr("signal.signal", lambda *arguments: None)  # the handler is for a process of its own
    under_way: list[str] = []
    monkeypatch.setattr(run, "run_side", run_failing(error, lambda: under_way.append(failed_report(old_report))))
    outputs = ["--out", str(old_report), "--junit", str(tmp_path / "parity.xml")]
    command = ["compare", "--format", "json", *outputs, str(tmp_path / "train.py"), "--steps=3"]

    if isinstance(error, SystemExit):
        with pytest.raises(SystemExit):
            main.main(command)
    else:
        assert main.main(command) == (130 if isinstance(error, KeyboardInterrupt) else 2), "1 would say: different"

    assert under_way == ["The comparison has not ended."], "what is left where the process is killed"
    assert reason in failed_report(old_report)
    assert "<error " in (tmp_path / "parity.xml").read_text()
    printed = capsys.readouterr().out
    assert printed == (old_report / "report.json").read_text()
    assert json.loads(printed)["command"] == [str(tmp_path / "train.py"), "--steps=3"]


@pytest.mark.parametrize(
    "options",
    [["--noise", "--worker", "1"], ["--seeds", "3", "--ps", "1"], ["--map", "pairs.txt"], ["--requests", "none.json"]],
)
def test_a_refusal_of_options_is_an_object_too_and_leaves_the_report(
    options: list[str], old_report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    before = (old_report / "report.json").read_text()

    assert main.main(["compare", "--format", "json", "--out", str(old_report), *options, "train.py"]) == 2

    printed = json.loads(capsys.readouterr().out)
    assert printed["verdict"] == "not comparable"
    assert (old_report / "report.json").read_text() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "json", "--nosuch", "train.py"], "unrecognized arguments: --nosuch"),
        (["--format=json", "--steps", "0", "train.py"], "argument --steps: expected a whole number of 1 or more"),
        (["--format=json"], "the following arguments are required: SCRIPT"),
    ],
)
def test_a_mistake_in_the_command_line_is_an_object_too(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.main(["compare", *options])

    printed = json.loads(capsys.readouterr().out)
    assert (printed["verdict"], printed["exit_code"]) == ("not comparable", 2)
    assert printed["findings"][0]["message"].startswith(message)


def test_new_arguments_with_an_open_quotation_mark_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.py").touch()
    (tmp_path / "new.py").touch()

    assert main.main(["compare", "--new-args=--name='x", "old.py", "new.py"]) == 2
    assert "--new-args cannot be read." in capsys.readouterr().err


def test_a_rewrite_in_keras_3_is_refused_before_a_script_runs(
    old_report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("signal.signal", lambda *arguments: None)
    for name, text in (("old.py", "open('ran', 'w')"), ("new.py", "import keras\nopen('ran', 'w')")):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)

    assert main.main(["compare", "--out", str(old_report), "old.py", "new.py"]) == 2

    error = capsys.readouterr().err
    assert "another Keras than tf_keras" in error
    assert "keras in new.py" in error
    assert "only final metrics: add --seeds 5" in error
    assert "another Keras than tf_keras" in failed_report(old_report)
    assert not (tmp_path / "ran").exists()


def test_an_old_report_does_not_outlive_its_script(
    old_report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.html").write_text("mine")

    assert main.main(["compare", "--out", str(old_report), "train.py"]) == 2
    assert "There is no such script." in failed_report(old_report)
    assert capsys.readouterr().out == ""
    assert main.main(["compare", "--format", "json", "train.py"]) == 2
    assert json.loads(capsys.readouterr().out)["verdict"] == "not comparable"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.html", "report"]


def test_summaries_are_written_beside_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *arguments: None)
    monkeypatch.setattr(run, "compare", lambda *script, **options: ParityResult((), "replay", "equal", Thresholds()))

    assert main.main(["compare", "--junit", "parity.xml", "--markdown", "ci/parity.md", "train.py"]) == 0

    assert 'errors="0"' in (tmp_path / "parity.xml").read_text()
    assert "**EQUAL**" in (tmp_path / "ci" / "parity.md").read_text()


@pytest.mark.parametrize("markdown", ["parity.xml", "parity-report/report.html"])
def test_two_outputs_of_one_path_are_refused(
    markdown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    assert main.main(["compare", "--junit", "parity.xml", "--markdown", markdown, "train.py"]) == 2
    assert "Two outputs have the same path." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_reports_of_others_stay_and_the_script_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit('the script was run')")
    (tmp_path / "report.html").write_text("<title>Equal</title>")

    assert main.main(["compare", "--out", str(tmp_path), str(tmp_path / "train.py")]) == 2

    assert "report.html was not written by estimator-bridge" in capsys.readouterr().err
    assert (tmp_path / "report.html").read_text() == "<title>Equal</title>"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "train.py"]


@pytest.mark.parametrize(("given", "seen"), [(["--", "--steps", "2"], ("--steps", "2")), (["a", "--"], ("a", "--")), ([], ())])
def test_a_separator_behind_two_scripts_belongs_to_neither(
    given: list[str], seen: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags behind it would be no flags for a script that gets it."""
    scripts = [write(tmp_path / f"{name}.py", "") for name in ("old", "new")]
    orders: list[Order] = []

    def failing(order: Order, *_: object) -> float:
        orders.append(order)
        raise BridgeError("ended")

    monkeypatch.setattr(run, "run_side", failing)
    assert main.main(["compare", "--out", str(tmp_path / "report"), *map(str, scripts), *given]) == 2
    (order,) = orders
    assert order.script.args == seen
    assert order.plan is not None
    assert order.plan.script.args == seen


def test_a_rewrite_that_is_not_there_is_no_argument_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comparison of the old script with itself would end EQUAL."""
    monkeypatch.setattr(run, "run_side", lambda *arguments: pytest.fail("a side was started"))
    assert main.main(["compare", "--out", str(tmp_path / "report"), str(write(tmp_path / "old.py", "")), "nwe.py"]) == 2
    assert "There is no such rewrite." in capsys.readouterr().err
