"""Parses a file for the rules, as Python 3 or else as Python 2."""

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
    """A parsed file.

    Attributes:
        path: Path for messages.
        text: Source as it is in the file.
        tree: Syntax tree; of the rewritten text if the file is Python 2.
        idioms: Rewritten places of a file that only Python 2 parses.
        error: First error of Python 3's parser.
    """

    path: str
    text: str
    tree: ast.Module
    idioms: tuple[Idiom, ...] = ()
    error: SyntaxError | None = None

    @functools.cached_property
    def names(self) -> Names:
        """The meaning of the file's names."""
        return Names(self.tree)


def read_source(content: bytes, path: str) -> Source:
    """Parses a file.

    Args:
        content: Content of the file.
        path: Path, for messages and to find out if the file is in a package.

    Raises:
        SyntaxError: The file is neither Python 3 nor Python 2; line and column are Python 3's.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes in strings
            return Source(path, decoded(content), ast.parse(content))
    except (ValueError, RecursionError, MemoryError) as unreadable:  # null bytes, nested too deeply
        raise SyntaxError(str(unreadable) or "nested too deeply", (path, 1, 1, "")) from None
    except SyntaxError as error:
        try:
            mended = mend(content, path if Path(path).with_name("__init__.py").exists() else "")
            return Source(path, decoded(content), mended.tree(), mended.idioms, error)
        except SyntaxError:
            raise error from None
