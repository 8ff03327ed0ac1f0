"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from estimator_bridge.parity import pytest_plugin

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
JOB = HERE.parent / "data" / "small_job.py"
OPTIONS = ("-p", "no:estimator-bridge", "-p", "estimator_bridge.parity.pytest_plugin", "-p", "no:cacheprovider")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Makes comparisons end with the verdict of an environment variable."""

    def command() -> list[str]:
        return [sys.executable, str(HERE / "stand_in_compare.py"), os.environ["VERDICT"]]

    monkeypatch.setattr(pytest_plugin, "compare_command", command)
    return monkeypatch


def run(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    """Runs a file of tests."""
    pytester.makepyfile(source)
    return pytester.runpytest_inprocess(*OPTIONS, *options)


REWRITE = """
    def test_rewrite(assert_parity):
        report = assert_parity("old.py", "new.py", steps=200, args=["--lr", "0.1"], new_args=["--name", "a b"])
        assert report["verdict"] == "equal"
"""


def test_equal_scripts_pass(pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch) -> None:
    stand_in.setenv("VERDICT", "equal")
    run(pytester, REWRITE).assert_outcomes(passed=1)


def test_a_difference_is_told_in_a_few_lines(pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch) -> None:
    stand_in.setenv("VERDICT", "different")
    pytester.makepyprojecttoml("[tool.estimator-bridge]\nrel-diff = 1e-3\nreport_dir = 'build'\n")

    result = run(pytester, REWRITE)

    result.assert_outcomes(failed=1)
    command = "--steps 200 --rel-diff 0.001 '--new-args=--name '\"'\"'a b'\"'\"'' old.py new.py --lr 0.1"
    result.stdout.fnmatch_lines(
        [
            f"DIFFERENT: {command}",
            "  step 1, loss: The losses differ (1).",
            "  step 2, loss: The losses differ (2).",
            "  step 3, loss: The losses differ (3).",
            "  ... and 2 more in the report",
            f"Report: {pytester.path}/build/test_rewrite/report.html",
            f"Command: estimator-bridge compare --out {pytester.path}/build/test_rewrite {command}",
        ],
        consecutive=True,
    )
    assert (pytester.path / "build" / "test_rewrite" / "report.html").is_file()


def test_a_cause_stands_first(pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch) -> None:
    stand_in.setenv("VERDICT", "different")
    stand_in.setenv(
        "CAUSE", json.dumps({"name": "loss scale", "seen": "The loss is twice as large.", "change": "Take the mean."})
    )
    lines = ["  cause: loss scale: The loss is twice as large.", "  to do: Take the mean.", "  step 1, loss: *"]
    run(pytester, REWRITE).stdout.fnmatch_lines(lines, consecutive=True)


def test_the_reason_why_sides_cannot_be_compared_stands_first(pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch) -> None:
    stand_in.setenv("VERDICT", "not comparable")
    stand_in.setenv("REASON", "The two sides cannot draw the same random numbers: dropout.")
    lines = ["NOT COMPARABLE: *", "  The two sides cannot draw the same random numbers: dropout.", "  step 1, loss: *"]
    run(pytester, REWRITE).stdout.fnmatch_lines(lines, consecutive=True)


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        ("not comparable", "NOT COMPARABLE: *train.py"),
        ("hangs", "The comparison took longer than its time limit of 1 s, and was ended."),
        ("wrong option", "estimator-bridge: no option --stesp"),
    ],
)
def test_no_comparison_fails_with_its_reason(
    verdict: str, line: str, pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch
) -> None:
    stand_in.setenv("VERDICT", verdict)
    source = "def test_script(assert_parity):\n    assert_parity('train.py', time_limit={})"

    result = run(pytester, source.format(1 if verdict == "hangs" else 60))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([line])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("line", ["rel-dif = 1e-3", "rel-diff = 'small'", "report-dir = 1", "time-limit = true"])
def test_a_mistake_in_the_table_is_named(line: str, pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch) -> None:
    stand_in.setenv("VERDICT", "equal")
    pytester.makepyprojecttoml(f"[tool.estimator-bridge]\n{line}\n")
    result = run(pytester, REWRITE)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*pyproject.toml: * has {line.partition(' ')[0].replace('-', '_')} = *; expected: *"])


def test_a_wrong_keyword_is_named(pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch) -> None:
    stand_in.setenv("VERDICT", "equal")
    result = run(pytester, "def test_script(assert_parity):\n    assert_parity('train.py', stesp=3)")
    result.stdout.fnmatch_lines(["*TypeError: assert_parity has no option stesp; it has *"])


def test_two_calls_write_two_reports(pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch) -> None:
    stand_in.setenv("VERDICT", "equal")
    pytester.makepyprojecttoml("[tool.estimator-bridge]\nreport-dir = 'build'\n")
    run(pytester, "def test_both(assert_parity):\n    assert_parity('a.py')\n    assert_parity('b.py')").assert_outcomes(
        passed=1
    )
    found = sorted(path.relative_to(pytester.path).as_posix() for path in pytester.path.glob("build/**/report.json"))
    assert found == ["build/test_both/2/report.json", "build/test_both/report.json"]


def test_the_marker_gives_defaults(pytester: pytest.Pytester, stand_in: pytest.MonkeyPatch) -> None:
    stand_in.setenv("VERDICT", "equal")
    marker = "import pytest; pytestmark = pytest.mark.parity(args=['--lr=1'], rel_diff=0.1)"
    test = "def test_script(assert_parity): assert assert_parity('a.py', rel_diff=0.2)['command'] == COMMAND"
    run(pytester, f"{marker}\n{test.replace('COMMAND', repr(['--rel-diff', '0.2', 'a.py', '--lr=1']))}").assert_outcomes(
        passed=1
    )


def test_tests_with_the_fixture_have_the_marker(pytester: pytest.Pytester) -> None:
    source = "def test_script(assert_parity):\n    raise AssertionError\n\ndef test_other():\n    pass"
    run(pytester, source, "-m", "not parity", "--strict-markers").assert_outcomes(passed=1, deselected=1)


def test_pytest_finds_the_plugin_where_the_package_is_installed() -> None:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = toml.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"estimator-bridge": pytest_plugin.__name__}
    assert any(requirement.startswith("pytest>=") for requirement in project["dependencies"])


def test_the_plugin_loads_nothing_heavy() -> None:
    code = "import sys, estimator_bridge.parity.pytest_plugin; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    roots = {name.partition(".")[0] for name in loaded.stdout.split()}
    assert not roots & {"tensorflow", "tf_keras", "keras", "numpy", "rich", "jinja2", "libcst", "psutil"}


@pytest.mark.slow
@pytest.mark.usefixtures("warm_python")
def test_a_real_script_is_equal_and_one_that_calls_no_estimator_is_not_comparable(pytester: pytest.Pytester) -> None:
    plain = pytester.makepyfile(plain="import tensorflow as tf\nprint(tf.placeholder(tf.float32))")
    source = f"""
        def test_equal(assert_parity):
            assert_parity({str(JOB)!r}, steps=3)

        def test_not_comparable(assert_parity):
            assert_parity({str(plain)!r})
    """

    result = run(pytester, source)

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["NOT COMPARABLE: *plain.py", "  calls: *called no Estimator*"])


@pytest.mark.slow
@pytest.mark.parametrize(("options", "outcome"), [("", "passed"), ("--epsilon=1e-4", "failed")])
def test_real_scripts_are_compared(pytester: pytest.Pytester, options: str, outcome: str) -> None:
    rewrites = HERE.parent / "data" / "rewrites"
    source = f"""
        def test_rewrite(assert_parity):
            report = assert_parity({str(rewrites / "mlp_old.py")!r}, {str(rewrites / "mlp_new.py")!r}, steps=6, new_args={options.split()!r})
            assert len(report["losses"]) == 6
    """
    result = run(pytester, source)

    result.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        result.stdout.fnmatch_lines(["DIFFERENT: *", "  cause: epsilon: epsilon of Adam: old 1e-08, new 0.0001.*"])
