"""The log file of a task. A write may fail, because the task must not wait for a full disk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO


class Log:
    """A file that takes lines while it can be written, and again once it can; the first failure is reported.

    Args:
        path: Path of the file.
        say: Function that prints one line to the user.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._file: IO[bytes] | None = None
        self._has_failed = False

    def append(self, line: bytes) -> None:
        """Writes a line, so that others can read it at once."""
        with self._report_failure():
            if self._file is None:
                self._file = self._path.open("ab")
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        """Closes the file. A network's disk may report only now that it is full."""
        with self._report_failure():
            if self._file is not None:
                self._file.close()

    @contextlib.contextmanager
    def _report_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                self._say(f"{self._path} cannot be written: {error.strerror}; lines are printed here, but missing there")
