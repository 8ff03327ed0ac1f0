"""Consoles for tables: as wide as the terminal, or as wide as the content where there is no terminal."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 100_000
_TRAILING = re.compile(r" +$", re.MULTILINE)


def make_console(*, stderr: bool = False) -> Console:
    """Returns a console for stdout or stderr.

    Where that is no terminal, lines are neither wrapped nor padded, so that programs find whole names in them.

    Args:
        stderr: True for stderr.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Console(stderr=stderr, emoji=False)  # a line number between colons is not an emoji
    return Console(file=cast("TextIO", _Unpadded(stream)), emoji=False, width=_WIDE)


class _Unpadded:
    """A stream whose lines lose the spaces at their end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(_TRAILING.sub("", text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False
