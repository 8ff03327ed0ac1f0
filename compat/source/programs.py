"""Converts the files of a program together, several at a time."""

from __future__ import annotations

import contextlib
import functools
import gc
import multiprocessing
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from estimator_bridge.compat.source.fixers.conversion import Conversion, convert
from estimator_bridge.compat.source.merging import Modules, merge_all

_LINES_OF_ONE = 2000
"""Lines from which further processes are worth their start."""
_NAMED = re.compile(r"^(\w+) = (?:(?:\w+\.)*(\w+)\.)?(\w+)\s*$", re.MULTILINE)
"""Another name for what may be a model function: ``MODEL_FN = models.small``."""
_Task = tuple[Path, str, Mapping[str, str], bool, frozenset[str]]


def convert_program(texts: Mapping[Path, str], root: Path, shim: bool, together: bool) -> dict[Path, Conversion]:
    """Returns the conversion of each file, whose networks may be in others.

    Args:
        texts: Source of each file, in Python 3.
        root: Folder below which Python finds the modules.
        shim: Value of ``shim`` in ``convert``.
        together: The new files take the models of each other.
    """
    merged = merge_all(Modules(texts, root))
    own = {path: merged[path].text if path in merged else text for path, text in texts.items()}
    with _Workers(texts, root) as workers:
        found = workers.converted((path, text, {}, shim, frozenset()) for path, text in own.items())
        if together:
            again = _with_models_of_others(own, found, shim)
            found |= workers.converted(again)
    return {path: one.in_lines(merged[path].lines) if path in merged else one for path, one in found.items()}


def _with_models_of_others(texts: Mapping[Path, str], found: Mapping[Path, Conversion], shim: bool) -> Iterable[_Task]:
    """Yields the files that use what became models in others."""
    elsewhere: dict[str, str] = {}
    makers: set[str] = set()
    named: dict[tuple[str, str], set[Path]] = {}  # module and function: the files that may be meant
    models = {(path.stem, function) for path, conversion in found.items() for function in conversion.models}
    for path, conversion in found.items():
        parts = [part for part in path.with_suffix("").parts if part != "__init__"]
        names = _NAMED.findall(texts[path])
        others = {name: name for name, module, function in names if (module or path.stem, function) in models}  # the class now
        for place in range(len(parts)):  # a relative import names the last parts alone
            module = ".".join(parts[place:])
            elsewhere |= {f"{module}.{function}": model for function, model in {**others, **conversion.models}.items()}
            makers |= {f"{module}.{function}" for function in conversion.makers}
        for function in (*others, *conversion.models, *conversion.makers):
            # Which module makes the object of a method, only the running script knows.
            owner, _, name = function.rpartition(".")
            named.setdefault((name if owner else parts[-1], name), set()).add(path)
    for path, text in texts.items():
        words = set(re.findall(r"\w+", text))
        if any(words.issuperset(pair) and files - {path} for pair, files in named.items()):
            yield path, text, elsewhere, shim, frozenset(makers)


class _Workers:
    """Processes that convert files; none for a small program."""

    def __init__(self, texts: Mapping[Path, str], root: Path) -> None:
        lines = sum(text.count("\n") for text in texts.values())
        processes = min(len(texts), os.cpu_count() or 1)
        self._pool = None
        if lines >= _LINES_OF_ONE and processes > 1:
            self._pool = multiprocessing.get_context("spawn").Pool(processes, _start, (dict(texts), root))
        else:
            _start(texts, root)

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()

    def converted(self, tasks: Iterable[_Task]) -> dict[Path, Conversion]:
        """Returns the conversions of files."""
        return dict(map(_convert, tasks) if self._pool is None else self._pool.imap_unordered(_convert, tasks))


_modules: list[Modules] = []


def _start(texts: Mapping[Path, str], root: Path) -> None:
    _modules[:] = [Modules(texts, root)]
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others


def _convert(task: _Task) -> tuple[Path, Conversion]:
    path, text, elsewhere, shim, makers = task
    with _without_collections(text.count("\n")):
        modules = _modules[0]
        return path, convert(
            text,
            elsewhere,
            shim,
            makers,
            functools.partial(modules.may_make_layers, path),
            modules.imported.get(path, frozenset()),
            modules.has_scopes,
        )


_uncollected: list[int] = []  # lines of each file that was converted since Python's collector has run


@contextlib.contextmanager
def _without_collections(lines: int) -> Iterator[None]:
    """Keeps Python's collector from looking through large syntax trees again and again: it runs behind some thousand lines.

    After each file, it took a third of the time of a project of 12,000 lines.

    Args:
        lines: Lines of the file that is converted meanwhile.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        _uncollected.append(lines)
        if sum(_uncollected) >= _LINES_OF_ONE:
            _uncollected.clear()
            gc.collect()
