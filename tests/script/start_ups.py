"""Ways to start up under quiet_start_up; a function each, with arguments from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from unittest import mock

from estimator_bridge.script import quiet
from estimator_bridge.script.quiet import quiet_start_up


def write(text: str) -> None:
    """Writes to stderr as C++ code does."""
    os.write(2, text.encode())


def messages(inside: str, after: str) -> None:
    with quiet_start_up():
        write(inside)
    write(after)


def aborting(text: str) -> None:
    with quiet_start_up():
        write(text)
        os.abort()


def raising() -> None:
    try:
        with quiet_start_up():
            __import__("nowhere")
    except ImportError:
        write("I0000 after\n")
    try:
        os.wait()
    except ChildProcessError:
        write("no child left\n")


def leaving_a_process() -> None:
    with quiet_start_up():
        left = subprocess.Popen([sys.executable, __file__, "pausing"])
    assert left.poll() is None
    left.kill()
    write("after")


def pausing() -> None:
    signal.pause()


def level_after(text: str) -> None:
    with quiet_start_up():
        write(text)
    write(os.environ["TF_CPP_MIN_LOG_LEVEL"])


def level_with(driver: str) -> None:
    with mock.patch.object(quiet, "_GPU_DRIVERS", (driver,)), quiet_start_up():
        write(os.environ["TF_CPP_MIN_LOG_LEVEL"] + "\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
