"""Which tests one TensorFlow is enough for; and a Python that starts with it imported, for tests of commands in processes of their own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WARM = HERE / "warm"
ONCE = (  # files and folders in which nothing depends on TensorFlow's version
    # The launcher, with stand-ins for its tasks: no TensorFlow. Real tasks are in test_faults, test_launch and schedulers.
    "launcher/audit/test_audit.py",
    "launcher/audit/test_rules.py",
    "launcher/monitors",
    "launcher/processes",
    *(f"launcher/test_{subject}.py" for subject in ("display", "machines", "server_status", "supervisor")),
    "launcher/schedulers/test_kubeflow.py",
    # Command lines and source that is read, not run.
    *(f"cli/test_{verb}.py" for verb in ("check", "main")),
    *(f"compat/source/test_{subject}.py" for subject in ("checking", "names", "python2")),
    "compat/source/rules/test_misuse_checks.py",
    # What processes leave on the disk that are killed, and how much memory they take: our files, in our own processes.
    "compat/checkpoint/writing/test_kill.py",
    "compat/checkpoint/test_memory.py",
    # Python scripts without TensorFlow, under the runner.
    "script/test_run.py",
    # What a comparison is judged by, and its report.
    "parity/report",
    "parity/test_judge.py",
    # Whole examples: more steps of what integration/test_golden.py compares with TensorFlow 1.15.5 on every TensorFlow.
    "integration/test_examples.py",
    # Wheels, sdists, installations and pages.
    "packaging",
    "compat/config/test_documentation.py",
    # Source that is parsed.
    "style",
)


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is listed as ``once``; a file can mark single tests of its own."""
    listed = [HERE / name for name in ONCE]
    for item in items:
        if any(item.path.is_relative_to(place) for place in listed):
            item.add_marker("once")


@pytest.fixture(autouse=True, scope="session")
def known_heap() -> None:
    """TensorFlow's own million objects need not be looked at by each garbage collection of each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _warm_python() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:  # the path of a socket may have 100 characters
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
        assert server.stdout.readline(), "the server could not start; its words are above"
        yield str(client)
        server.communicate()  # ends it: it reads the end of its stdin


@pytest.fixture
def warm_python(_warm_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``sys.executable`` starts processes that have TensorFlow and the legacy path behind them: 3 s less for each.

    Not for tests of what happens before: the order of imports, environment variables that TensorFlow reads while it is imported.
    """
    monkeypatch.setattr(sys, "executable", _warm_python)
