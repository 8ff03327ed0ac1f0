"""The file of a task's output, which may fail: the task must not wait for a full disk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO


class Log:
    """Appends lines as long as that works, and again once it does; the first time that it does not is told, and why.

    Args:
        path: of the file.
        say: takes a line for the reader.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._file: IO[bytes] | None = None
        self._told = False

    def append(self, line: bytes) -> None:
        """Writes a line, so that others can read it at once."""
        with self._failure_told():
            if self._file is None:
                self._file = self._path.open("ab")
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        """A network's disk may say only now that it is full."""
        with self._failure_told():
            if self._file is not None:
                self._file.close()

    @contextlib.contextmanager
    def _failure_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._told:
                self._told = True
                self._say(f"{self._path} cannot be written: {error.strerror}; its lines are shown, and missing there")
