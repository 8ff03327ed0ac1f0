"""Standard streams of a command that goes on once its reader is gone, e.g. ``head`` has ended or the terminal was closed."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

# Errors of a pipe without a reader, and of a closed terminal: EIO by POSIX 11.1.10, ENXIO on FreeBSD.
_GONE = {errno.EPIPE, errno.EIO, errno.ENXIO}
_OUTPUTS = ("stdout", "stderr")


def open_closed_streams() -> None:
    """Replaces standard streams that were closed before Python started (``>&-``), which are None, by streams to nowhere.

    Otherwise a file that is opened next, e.g. a checkpoint, gets their descriptors and with them everything that C++ prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Python takes the lowest free descriptor, so in this order each stream gets its own.
            stream = Path(os.devnull).open(mode)  # noqa: SIM115 -- for as long as the process lives
            os.set_inheritable(stream.fileno(), True)  # as descriptors of standard streams are
            setattr(sys, name, stream)


@contextlib.contextmanager
def dropping_streams() -> Iterator[None]:
    """Makes stdout and stderr ``DroppingStream``, so that a reader that is gone changes no exit code."""
    for name in _OUTPUTS:
        setattr(sys, name, DroppingStream(getattr(sys, name)))
    try:
        yield
    finally:
        restore_streams()


def restore_streams() -> None:
    """Restores Python's own streams; a stream that a script has replaced stays."""
    for name in _OUTPUTS:
        stream = getattr(sys, name)
        if isinstance(stream, DroppingStream):
            stream.flush()  # Python does so when it exits, with exit code 120 if the reader is gone
            setattr(sys, name, stream.stream)


class DroppingStream:
    """A stream that drops its output once its reader is gone.

    Args:
        stream: Stream with a descriptor of its own.

    Attributes:
        stream: The same stream, for Python's own error handling.

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
        """Writes text, or drops it."""
        with self._while_read():
            self.stream.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes lines, or drops them."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flushes written text, or drops it."""
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
            # For buffered text, too: otherwise Python fails to write it when it exits, with exit code 120.
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), self.stream.fileno())
