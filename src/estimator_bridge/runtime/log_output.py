"""The log output of the command line: messages of ``estimator_bridge`` loggers go to stderr."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator


class _StderrHandler(logging.Handler):
    """Writes to the ``sys.stderr`` of the moment: progress bars, tests and scripts replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # nobody reads stderr, or its disk is full: the work goes on
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()


@contextlib.contextmanager
def log_to_stderr() -> Iterator[None]:
    """While active, prints warnings of this package as ``estimator-bridge: MESSAGE`` on stderr.

    The root logger's handlers do not see them: absl installs one there, and each message would appear twice.
    """
    package = logging.getLogger("estimator_bridge")
    handler = _StderrHandler()
    handler.setFormatter(logging.Formatter("estimator-bridge: %(message)s"))
    package.addHandler(handler)
    package.propagate = False
    try:
        yield
    finally:
        package.removeHandler(handler)
        package.propagate = True
