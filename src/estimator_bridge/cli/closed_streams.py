"""Standard streams of a command that goes on when nobody reads it any more: ``head`` has ended, the terminal was closed."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

_GONE = {errno.EPIPE, errno.EIO, errno.ENXIO}  # a pipe's reader, and a terminal: EIO by POSIX 11.1.10, ENXIO on FreeBSD

_OUTPUTS = ("stdout", "stderr")


def open_closed_streams() -> None:
    """Standard streams that were closed before Python started (``>&-``), where it has None, lead to nowhere from now on.

    What is opened next would get their descriptors otherwise, and whatever C++ prints: a checkpoint, for one.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest descriptor that is free, so in this order its own.
            stream = Path(os.devnull).open(mode)  # noqa: SIM115 -- for as long as the process lives
            os.set_inheritable(stream.fileno(), True)  # as those of standard streams are
            setattr(sys, name, stream)


@contextlib.contextmanager
def dropping_streams() -> Iterator[None]:
    """Makes stdout and stderr ``DroppingStream``, so that a reader that has left changes no exit code."""
    for name in _OUTPUTS:
        setattr(sys, name, DroppingStream(getattr(sys, name)))
    try:
        yield
    finally:
        restore_streams()


def restore_streams() -> None:
    """Puts Python's own streams back; one that a script has replaced stays."""
    for name in _OUTPUTS:
        stream = getattr(sys, name)
        if isinstance(stream, DroppingStream):
            stream.flush()  # at its end Python does, and answers a reader that has left with exit code 120
            setattr(sys, name, stream.stream)


class DroppingStream:
    """A stream for as long as somebody reads it; then what is written to it is dropped.

    Args:
        stream: Stream with a descriptor of its own.

    Attributes:
        stream: The same, which Python's own error handling is left with.

    Example:
        >>> import io
        >>> read = io.StringIO()
        >>> DroppingStream(read).write("step 1")
        6
        >>> read.getvalue()
        'step 1'
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes, or drops."""
        with self._while_read():
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hands on what was written, or drops it."""
        with self._while_read():
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    @contextlib.contextmanager
    def _while_read(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _GONE:
                raise
            # For what is buffered still, too: Python fails to write it at its end, and exits with 120.
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), self.stream.fileno())
