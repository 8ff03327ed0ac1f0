"""Reads files: looks up their paths, parses them as Python 3 or else as Python 2, and finds a script's own modules."""

from __future__ import annotations

import ast
import dataclasses
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from estimator_bridge.compat.source.names import Names
from estimator_bridge.compat.source.notebooks.cells import NO_CELLS, Cell, CellPlaces, in_cell, is_notebook, read_cells
from estimator_bridge.compat.source.notebooks.ipython_lines import IPythonLine
from estimator_bridge.compat.source.python2.mending import Idiom, decoded, mend
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.user_code import cell_file

_MOST_ABOVE = 5
"""Folders above a script in which its modules are looked for."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A parsed file.

    Attributes:
        path: Path for messages.
        text: Source as it is in the file.
        tree: Syntax tree; of the rewritten text if the file is Python 2.
        idioms: Rewritten places of a file that only Python 2 parses.
        error: First error of Python 3's parser.
        cells: Places of a notebook's cells, which are joined in ``text`` and ``tree``.
        ipython_lines: A notebook's lines that only IPython can run, by line of ``text``.
    """

    path: str
    text: str
    tree: ast.Module
    idioms: tuple[Idiom, ...] = ()
    error: SyntaxError | None = None
    cells: CellPlaces = NO_CELLS
    ipython_lines: tuple[IPythonLine, ...] = ()

    def place(self, line: int) -> str:
        """Returns file and line, and the cell of a notebook.

        Args:
            line: Line of ``text``, from 1.
        """
        return self.cells.place(self.path, line)

    @functools.cached_property
    def names(self) -> Names:
        """The meaning of the file's names."""
        return Names(self.tree)


def check_path(path: Path) -> None:
    """Checks that the system looks a path up, so that ``exists``, ``is_file`` and ``is_dir`` raise nothing; it need not exist.

    Args:
        path: Path of a file or folder that the user names.

    Raises:
        BridgeError: A folder on the way may not be entered, or a name is too long.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # ValueError for a NUL in a name
        raise BridgeError(
            "A path cannot be looked up.",
            expected="the path of a file or folder, in folders that this user may enter",
            received=f"{path}: {getattr(error, 'strerror', error)}".replace("\0", "\\0"),
            fix="Check the path, and the permissions of its folders.",
        ) from None


def read_source(content: bytes, path: str) -> Source:
    """Parses a file, or the cells of a notebook.

    Args:
        content: Content of the file.
        path: Path, for messages and to find out if the file is a notebook or in a package.

    Raises:
        SyntaxError: The file is neither Python 3 nor Python 2; file, line and column are those of Python 3's error.
        BridgeError: The file is a notebook that cannot be read.
    """
    if is_notebook(Path(path)):
        return _joined(read_cells(content, path), path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes in strings
            return Source(path, decoded(content), ast.parse(content, path))
    except (ValueError, RecursionError, MemoryError) as unreadable:  # null bytes, nested too deeply
        raise SyntaxError(str(unreadable) or "nested too deeply", (path, 1, 1, "")) from None
    except SyntaxError as error:
        try:
            mended = mend(content, path if Path(path).with_name("__init__.py").exists() else "")
            return Source(path, decoded(content), mended.tree(), mended.idioms, error)
        except SyntaxError:
            raise error from None


def _joined(cells: list[Cell], path: str) -> Source:
    """Returns the cells of a notebook as one source, whose names mean the same in all cells."""
    tree, error = ast.Module([], []), None
    starts: list[int] = []
    idioms: list[Idiom] = []
    ipython_lines: list[IPythonLine] = []
    start = 1
    for cell in cells:
        starts.append(start)
        try:
            source = read_source(cell.as_file(), cell_file(path, cell.number))
        except SyntaxError as failure:
            raise in_cell(failure) from None
        tree.body += ast.increment_lineno(source.tree, start - 2).body
        idioms += (one._replace(line=one.line + start - 2) for one in source.idioms)
        ipython_lines += (one._replace(line=one.line + start - 1) for one in cell.ipython_lines)
        error = error or source.error
        start += cell.text.count("\n")
    text = "".join(cell.text for cell in cells)
    return Source(path, text, tree, tuple(idioms), error, CellPlaces(tuple(starts)), tuple(ipython_lines))


def own_sources(start: Path, *roots: Path, read: Callable[[bytes, str], Source] = read_source) -> Iterator[Source]:
    """Yields a script, then the modules below some folders that it imports, directly or through others.

    Args:
        start: Script; files that cannot be read or parsed are skipped.
        roots: Folders that Python searches first.
        read: Function that parses a file.
    """
    for kept in (_entries, _resolved):
        kept.cache_clear()  # folders may have changed
    pending, seen = [start], {resolved(start)}
    while pending:
        path = pending.pop(0)
        try:
            source = read(path.read_bytes(), str(path))
        except (OSError, SyntaxError):
            continue
        yield source
        for imported in _imported(source, path, roots):
            if resolved(imported) not in seen:
                seen.add(resolved(imported))
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
        if parts[0] and not {parts[0], f"{parts[0]}.py"} & _entries(folder):
            continue
        for length in range(len(parts), 0, -1):
            base = folder.joinpath(*parts[:length])
            files = base.with_suffix(".py"), base / "__init__.py"
            yield from (file for file in files if os.path.isfile(file))  # noqa: PTH113 -- False in a folder that is closed


def module_root(script: Path) -> Path:
    """Returns the folder below which Python finds a script's own modules: the script's, or the nearest one above it that has more of them.

    It is above for a script that is started as ``python -m package.script`` or with PYTHONPATH. Folders above a repository are not searched.

    Args:
        script: Absolute path of a file.
    """
    try:
        names = read_source(script.read_bytes(), str(script)).names
    except (OSError, SyntaxError, BridgeError):
        return script.parent
    others = {"", "tensorflow", *sys.stdlib_module_names}  # the name of a relative import begins with a dot
    dotted = {name for name, *_ in (*names.imports, *names.stars) if name.partition(".")[0] not in others}
    absent = [name for name in dotted if not any(find_modules(name, script, ()))]
    for folder in script.parents[:_MOST_ABOVE]:
        if any(any(find_modules(name, script, (folder,))) for name in absent):
            return folder
        if (folder / ".git").exists():
            break
    return script.parent


def resolved(path: Path) -> Path:
    """Returns ``path.resolve()``; it is looked up once for each script that ``own_sources`` reads.

    Args:
        path: Path of a file.
    """
    return _resolved(path if path.is_absolute() else Path.cwd() / path)


@functools.lru_cache(maxsize=4096)
def _resolved(path: Path) -> Path:
    return path.resolve()


@functools.lru_cache(maxsize=4096)
def _entries(folder: Path) -> frozenset[str]:
    try:
        return frozenset(entry.name for entry in folder.iterdir())
    except OSError:
        return frozenset()
