"""A file as the rules see it: its syntax tree and names, read as Python 3, else as Python 2."""

from __future__ import annotations

import ast
import dataclasses
import functools
import warnings
from pathlib import Path

from estimator_bridge.compat.source.names import Names
from estimator_bridge.compat.source.python2.mending import Idiom, decoded, mend


@dataclasses.dataclass(frozen=True)
class Source:
    """One file.

    Attributes:
        path: for messages.
        text: as it stands.
        tree: its syntax tree; that of the mended text where the file is Python 2.
        idioms: of a file that only Python 2 parses, what had to be rewritten.
        error: the first thing that Python 3 does not parse.
    """

    path: str
    text: str
    tree: ast.Module
    idioms: tuple[Idiom, ...] = ()
    error: SyntaxError | None = None

    @functools.cached_property
    def names(self) -> Names:
        """What its names mean."""
        return Names(self.tree)


def read_source(content: bytes, path: str) -> Source:
    """Parses a file.

    Args:
        content: its bytes.
        path: for messages, and to see whether a package is around it.

    Returns:
        The file.

    Raises:
        SyntaxError: it is neither Python 3 nor Python 2; with the line and column of Python 3.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in strings, which is not what is asked here
            return Source(path, decoded(content), ast.parse(content))
    except (ValueError, RecursionError, MemoryError) as unreadable:  # null bytes, nested too deeply
        raise SyntaxError(str(unreadable) or "nested too deeply", (path, 1, 1, "")) from None
    except SyntaxError as error:
        try:
            mended = mend(content, path if Path(path).with_name("__init__.py").exists() else "")
            return Source(path, decoded(content), mended.tree(), mended.idioms, error)
        except SyntaxError:
            raise error from None
