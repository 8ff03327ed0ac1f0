"""Marks the tests that need only one TensorFlow, and starts Python processes that have TensorFlow already imported."""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import selection
from tests.runtime.patched_names import PATTERNS

if not importlib.metadata.version("tensorflow").startswith("2.15."):
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # as install() does: whichever test comes first, tf.keras is Keras 2
os.environ["ESTIMATOR_BRIDGE_CHECK_PATCHES"] = PATTERNS  # here and in the processes of tests: each replaced name has its row
os.environ.setdefault(
    "ESTIMATOR_BRIDGE_CONTRIB", str(Path(__file__).parent / "nothing-fetched")
)  # not what the developer fetched
# Compiled once: several hundred processes import TensorFlow, and compiling it takes twice as long as importing it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
hypothesis.settings.register_profile("any machine", deadline=None)  # a busy one takes seconds for what takes milliseconds
hypothesis.settings.load_profile("any machine")
WARM = Path(__file__).parent / "warm"


def pytest_configure(config: pytest.Config) -> None:
    """Keeps pytest-xdist, where it is installed, from starting the files with the most tests first; lets processes of tests take Ctrl-C."""
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # what a shell starts in the background ignores it, with all below
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)  # before pytest evaluates -m
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what only one TensorFlow needs and what only ``.ci/full`` runs; the longest files come first."""
    selection.mark(items)
    selection.order(items)


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


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Prints at once why a test failed, in runs of many processes, which say it at their end alone."""
    if report.failed and hasattr(report, "node"):
        sys.stdout.write(f"\n{report.longreprtext}\n")
