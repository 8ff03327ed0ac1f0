"""Marks the tests that need only one TensorFlow, and starts Python processes that have TensorFlow already imported."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["ESTIMATOR_BRIDGE_CHECK_PATCHES"] = "1"  # here and in the processes of tests: each replaced name has its row
HERE = Path(__file__).parent
WARM = HERE / "warm"
ONCE = (  # files and folders that do not depend on TensorFlow's version
    # The launcher, with stand-ins for its tasks: no TensorFlow. Real tasks are in test_faults, test_launch and schedulers.
    "launcher/audit/test_audit.py",
    "launcher/audit/test_rules.py",
    "launcher/monitors",
    "launcher/processes",
    *(f"launcher/test_{subject}.py" for subject in ("display", "machines", "server_status", "supervisor")),
    "launcher/schedulers/test_kubeflow.py",
    # Command lines and source text that is not run.
    *(f"cli/test_{verb}.py" for verb in ("check", "main")),
    *(f"compat/source/test_{subject}.py" for subject in ("checking", "names", "python2")),
    "compat/source/rules/test_misuse_checks.py",
    # Files on disk after a kill, and memory: our own files and processes.
    "compat/checkpoint/writing/test_kill.py",
    "compat/checkpoint/test_memory.py",
    # Python scripts without TensorFlow, under the runner.
    "script/test_run.py",
    # Verdicts of comparisons and their reports.
    "parity/report",
    "parity/test_judge.py",
    # Whole examples: test_golden.py compares fewer steps with TensorFlow 1.15.5 on every TensorFlow.
    "integration/test_examples.py",
    # Wheels, sdists, installations and pages.
    "packaging",
    "compat/config/test_documentation.py",
    # Tests of source text.
    "style",
)


@pytest.hookimpl(tryfirst=True)  # before pytest evaluates -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests in ``ONCE`` with ``once``; a file can also mark single tests itself."""
    listed = [HERE / name for name in ONCE]
    for item in items:
        if any(item.path.is_relative_to(place) for place in listed):
            item.add_marker("once")


@pytest.fixture(autouse=True, scope="session")
def known_heap() -> None:
    """Exempts TensorFlow's million objects from the garbage collections of each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _warm_python() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:  # a socket's path has at most 100 characters
        client = Path(folder) / "python"
        client.write_text(f"#!{sys.executable} -IS\n{(WARM / 'client.py').read_text()}")
        client.chmod(0o700)
        server = subprocess.Popen(
            [sys.executable, WARM / "server.py", f"{client}.socket"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONHASHSEED": "0", "TF_CPP_MIN_LOG_LEVEL": "3"},
            start_new_session=True,
        )
        assert server.stdout
        assert server.stdout.readline(), "the server could not start; its output is above"
        yield str(client)
        server.communicate()  # the server ends when its stdin ends


@pytest.fixture
def warm_python(_warm_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes ``sys.executable`` start processes with TensorFlow and the legacy path already imported, which saves 3 s each.

    Not for tests of the import itself: the order of imports, or environment variables that TensorFlow reads during its import.
    """
    monkeypatch.setattr(sys, "executable", _warm_python)
