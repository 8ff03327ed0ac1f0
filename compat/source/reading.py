"""Reads files: parses them as Python 3 or else as Python 2, finds a script's own modules, and knows notebooks."""

from __future__ import annotations

import ast
import dataclasses
import functools
import shlex
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from estimator_bridge.compat.source.names import Names
from estimator_bridge.compat.source.python2.mending import Idiom, decoded, mend
from estimator_bridge.errors import BridgeError


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


def own_sources(start: Path, *roots: Path) -> Iterator[Source]:
    """Yields a script, then the modules below some folders that it imports, directly or through others.

    Args:
        start: Script; files that cannot be read or parsed are skipped.
        roots: Folders that Python searches first.
    """
    pending, seen = [start], {start.resolve()}
    while pending:
        path = pending.pop(0)
        try:
            source = read_source(path.read_bytes(), str(path))
        except (OSError, SyntaxError):
            continue
        yield source
        for imported in _imported(source, path, roots):
            if imported.resolve() not in seen:
                seen.add(imported.resolve())
                pending.append(imported)


def _imported(source: Source, path: Path, roots: tuple[Path, ...]) -> Iterator[Path]:
    names = [dotted for dotted, _, _ in source.names.imports] + [module for module, _, _ in source.names.stars]
    for dotted in names:
        yield from find_modules(dotted, path, roots)


def find_modules(dotted: str, path: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Yields the files that an import executes, as far as they are the script's own.

    Args:
        dotted: Imported name, with a dot in front for each level of a relative import.
        path: File of the import.
        roots: Folders that Python searches first.
    """
    level = len(dotted) - len(dotted.lstrip("."))
    folders = [path.parents[level - 1]] if level else [*roots, path.parent]  # Python 2 looked beside a module first
    parts = dotted[level:].split(".")
    for folder in folders:
        for length in range(len(parts), 0, -1):
            base = folder.joinpath(*parts[:length])
            yield from (file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file())


def is_notebook(path: Path) -> bool:
    """Returns True if a path has the name of a Jupyter notebook, which is JSON with code inside, not a script.

    Example:
        >>> is_notebook(Path("train.ipynb")), is_notebook(Path("train.py"))
        (True, False)
    """
    return path.suffix.lower() == ".ipynb"


def export_advice(path: Path) -> str:
    """Returns a sentence with the command that makes a script of a notebook."""
    command = shlex.join(["jupyter", "nbconvert", "--to", "script", str(path)])
    return f"Export it with `{command}`, take out get_ipython() lines, and name the script."


def refuse_notebook(path: Path) -> None:
    """Checks that a file is not a notebook.

    Args:
        path: File that is to be run or judged.

    Raises:
        BridgeError: The file is a notebook.
    """
    if is_notebook(path):
        raise BridgeError(
            "A Jupyter notebook is not a Python script.",
            expected="the path of a Python file",
            received=path,
            fix=export_advice(path),
        )
