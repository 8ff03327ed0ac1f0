"""A launch goes on when nobody reads it any more, and its exit code stays."""

from __future__ import annotations

import errno
import io
import os
import pty
import subprocess
import sys
from typing import TextIO, cast

import pytest

from estimator_bridge.cli.lasting import Lasting
from estimator_bridge.cluster.display import shown

_WRITES = """
import sys
from estimator_bridge.cli.lasting import Lasting
output = Lasting(sys.stdout)
for _ in range(2):
    output.write("line")
    output.flush()
sys.exit(3)
"""


def test_the_exit_code_stays_where_the_reader_has_left() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as left:
        ended = subprocess.run(
            [sys.executable, "-c", _WRITES], env=environment, stdout=left, stderr=subprocess.PIPE, timeout=60, check=False
        )

    assert (ended.returncode, ended.stderr) == (3, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere writes to a closed terminal end otherwise")
def test_a_terminal_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal, ours = pty.openpty()
    with os.fdopen(ours, "w") as stream, shown(cast(TextIO, Lasting(stream))) as (say, show):
        say("chief 0", "read")
        os.close(terminal)
        say("chief 0", "not read")
        show([])


def test_another_error_is_raised() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        Lasting(Full()).write("line")
