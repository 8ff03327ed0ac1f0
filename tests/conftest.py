"""A Python that starts with TensorFlow imported, for the many tests that run whole commands in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

WARM = Path(__file__).parent / "warm"


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
