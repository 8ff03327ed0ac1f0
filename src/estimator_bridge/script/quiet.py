"""Keeps TensorFlow's start-up and its deprecation warnings out of what a script prints; ``--verbose`` shows them."""

import contextlib
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from estimator_bridge.runtime.patching import replaced

_GPU_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA's, Windows' in WSL, AMD's
_EARLY_MESSAGE = re.compile(rb"WARNING: All log messages before absl::InitializeLog|I\d{4} ")
_LAST_LINES_SECONDS = 2
_DEPRECATED_LAYERS = r"`tf\.layers\.\w+` is deprecated"


@contextlib.contextmanager
def quiet_start_up() -> Iterator[None]:
    """While active, TensorFlow may be imported without its start-up messages; does nothing if the user has set TF_CPP_MIN_LOG_LEVEL.

    With a GPU, later warnings and errors of TensorFlow's C++ are printed: they say why a GPU is not used. A task of a cluster prints the errors,
    which tell of lost connections. Elsewhere little is left but TensorFlow's search for a GPU, which it reports as an error.
    """
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ or "tensorflow" in sys.modules:
        yield
        return
    has_gpu = any(Path(driver).exists() for driver in _GPU_DRIVERS)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1" if has_gpu else "2" if "TF_CONFIG" in os.environ else "3"
    with _without_early_messages() if hasattr(os, "fork") else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def _without_early_messages() -> Iterator[None]:
    """While active, another process passes on what is written to stderr, less what absl writes before it knows its level.

    Python could not filter that itself: an import that aborts would take its last words along.
    """
    reading, writing = os.pipe()
    stderr = os.dup(2)
    child = os.fork()
    if child == 0:
        os.close(writing)
        _filter(reading, stderr)
    os.close(reading)
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        _wait_for(child)


def _wait_for(child: int) -> None:
    """Waits until the filter has passed on everything; a process that the import left behind may keep it busy, and is not waited for."""
    deadline = time.monotonic() + _LAST_LINES_SECONDS
    with contextlib.suppress(ChildProcessError):  # a handler of SIGCHLD was quicker
        while os.waitpid(child, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.005)


def _filter(reading: int, writing: int) -> NoReturn:
    """Copies lines until nobody can write any more, then ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the importing process; its last lines must pass
    try:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                if not _EARLY_MESSAGE.match(line):
                    os.write(writing, line)
    finally:
        os._exit(0)


@contextlib.contextmanager
def quiet_deprecations() -> Iterator[None]:
    """While active, TensorFlow and Keras print no deprecation warnings: the names of TensorFlow 1 stay available here."""
    from tensorflow.python.util import deprecation

    before = list(warnings.filters)
    warnings.filterwarnings("ignore", _DEPRECATED_LAYERS, append=True)
    added = [one for one in warnings.filters if one not in before]
    try:
        with replaced(deprecation, _PRINT_DEPRECATION_WARNINGS=False):
            yield
    finally:
        for one in added:
            with contextlib.suppress(ValueError):  # a script may have reset the filters
                warnings.filters.remove(one)  # type: ignore[attr-defined]
