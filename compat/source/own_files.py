"""The files that belong to a script: the modules that it imports from its own folder, found without importing anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from estimator_bridge.compat.source.reading import Source, read_source


def own_sources(start: Path, root: Path) -> Iterator[Source]:
    """Yields a script, then the modules below a folder that it imports, directly or through others.

    Args:
        start: Script; files that cannot be read or parsed are skipped.
        root: Folder that Python searches first.
    """
    pending, seen = [start], {start.resolve()}
    while pending:
        path = pending.pop(0)
        try:
            source = read_source(path.read_bytes(), str(path))
        except (OSError, SyntaxError):
            continue
        yield source
        for imported in _imported(source, path, root):
            if imported.resolve() not in seen:
                seen.add(imported.resolve())
                pending.append(imported)


def _imported(source: Source, path: Path, root: Path) -> Iterator[Path]:
    names = [dotted for dotted, _, _ in source.names.imports] + [module for module, _, _ in source.names.stars]
    for dotted in names:
        level = len(dotted) - len(dotted.lstrip("."))
        folders = [path.parents[level - 1]] if level else [root, path.parent]  # Python 2 looked beside a module first
        parts = dotted[level:].split(".")
        for folder in folders:
            for length in range(len(parts), 0, -1):
                base = folder.joinpath(*parts[:length])
                yield from (file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file())
