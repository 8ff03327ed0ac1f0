"""Judges files and folders: applies every rule to every file."""

import ast
import dataclasses
import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from estimator_bridge.compat.source.notebooks.cells import NO_CELLS, CellPlaces, is_notebook
from estimator_bridge.compat.source.reading import Source, check_path, read_source
from estimator_bridge.compat.source.rules.division import judge_division
from estimator_bridge.compat.source.rules.idioms import judge_idioms
from estimator_bridge.compat.source.rules.misuse_checks import judge_misuse
from estimator_bridge.compat.source.rules.one_shot import judge_one_shot
from estimator_bridge.compat.source.rules.removed_name_rules import judge_removed_names
from estimator_bridge.compat.source.rules.tensorflow_rules import Contrib, judge_tensorflow
from estimator_bridge.compat.source.surface import Surface
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict
from estimator_bridge.errors import BridgeError

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages", "build", "dist"})


@dataclasses.dataclass(frozen=True)
class FileReport:
    """The findings in one file.

    Attributes:
        path: Path as the user wrote it.
        lines: Number of lines.
        findings: Findings by line, also those that say that a name runs.
        unreadable: True if the file is not Python, so that nothing else is known of it.
        cells: Places of a notebook's cells; the lines of findings are those of all cells together.
    """

    path: str
    lines: int
    findings: tuple[SourceFinding, ...]
    unreadable: bool = False
    cells: CellPlaces = NO_CELLS


@dataclasses.dataclass(frozen=True, eq=False)
class Judge:
    """The environment that files are judged for.

    Attributes:
        surface: Names of the installed TensorFlow.
        contrib: Names of ``tf.contrib`` that the runner offers.
        python2: True if files are run with ``--py2``.
    """

    surface: Surface
    contrib: Contrib
    python2: bool = False

    def file(self, path: Path) -> FileReport:
        """Judges one file, without running anything.

        Args:
            path: Path of a Python file or a notebook.

        Raises:
            BridgeError: The file cannot be read.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BridgeError(
                "A file cannot be read.", expected="a Python file", received=f"{path}: {error.strerror}"
            ) from None
        return self.content(content, str(path))

    def content(self, content: bytes, path: str) -> FileReport:
        """Judges the bytes of a file.

        Args:
            content: Content of a Python file, or of a notebook if ``path`` names one.
            path: Path for messages.
        """
        lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
        try:
            return self.source(read_source(content, path))
        except SyntaxError as error:
            place = error.lineno or 1, max(error.offset or 1, 1)
            file = error.filename or path if is_notebook(Path(path)) else path  # that of a cell
            return _unreadable(file, lines, place, "syntax", f"Neither Python 3 nor Python 2: {error.msg}.")
        except BridgeError as error:
            return _unreadable(path, lines, (1, 1), "notebook", " ".join(str(error).split()))

    def source(self, source: Source) -> FileReport:
        """Judges a parsed file.

        Args:
            source: Parsed file.
        """
        lines = source.text.count("\n") + (not source.text.endswith("\n") and bool(source.text))
        return FileReport(source.path, lines, tuple(distinct_findings(self._findings(source))), cells=source.cells)

    def _findings(self, source: Source) -> Iterator[SourceFinding]:
        yield from judge_tensorflow(source, self.surface, self.contrib)
        yield from judge_removed_names(source)
        yield from judge_python2(source, self.python2)
        yield from judge_misuse(source)
        yield from _judge_ipython_lines(source)


def _unreadable(path: str, lines: int, place: tuple[int, int], symbol: str, message: str) -> FileReport:
    return FileReport(path, lines, (SourceFinding(*place, symbol, Kind.SYNTAX, Verdict.HUMAN, message),), unreadable=True)


def _judge_ipython_lines(source: Source) -> Iterator[SourceFinding]:
    for line in source.ipython_lines:
        verdict = Verdict.HUMAN if line.advice else Verdict.MENDED
        message = f"Only IPython can run it. {line.advice}" if line.advice else "only for IPython; run leaves it out"
        yield SourceFinding(line.line, 1, line.symbol, Kind.NOTEBOOK, verdict, message)
    asked = [
        name
        for name, place in source.names.nodes(ast.Name)
        if name.id == "get_ipython" and place.scope.find(name.id) is None and not place.guarded
    ]
    if asked:
        always = {id(node) for statement in source.tree.body if isinstance(statement, ast.Expr) for node in ast.walk(statement)}
        for name in asked:
            verdict = Verdict.HUMAN if id(name) in always else Verdict.LOOK  # else a test may have found IPython
            yield SourceFinding.at(name, name.id, Kind.PYTHON, verdict, "Only IPython has it. Take this statement out.")


def judge_python2(source: Source, python2: bool = False) -> Iterator[SourceFinding]:
    """Yields a finding for each trace of Python 2; ``check`` and ``run`` share this detector.

    Args:
        source: Parsed file.
        python2: True if the file is run with ``--py2``.
    """
    verdict = Verdict.MENDED if python2 else Verdict.HUMAN
    for judge in (judge_idioms, judge_one_shot, judge_division):
        yield from judge(source, verdict)


def find_files(paths: Sequence[str], exclude: Sequence[str] = ()) -> list[Path]:
    """Returns the Python files and notebooks at and below paths, each once.

    Args:
        paths: Files of any name, and folders; hidden folders and installed packages below them are skipped.
        exclude: Patterns of paths, or of parts of paths, to leave out.

    Raises:
        BridgeError: A path does not exist or cannot be looked up, a folder cannot be read, or there is no Python file.
    """

    def refuse(error: OSError) -> None:
        if not _is_excluded(Path(error.filename, "any.py"), exclude):
            received = f"{error.filename}: {error.strerror}"
            raise BridgeError(
                "A folder cannot be read.", received=received, fix="Leave it out with --exclude, or let this user read it."
            )

    found: dict[Path, None] = {}
    for text in paths:
        path = Path(text)
        check_path(path)
        if not path.exists():
            raise BridgeError(
                "There is no such file or folder.",
                expected="paths of Python files or folders",
                received=text,
                fix="Check the path.",
            )
        found.update(dict.fromkeys(_below(path, refuse) if path.is_dir() else [path]))
    kept = [path for path in found if not _is_excluded(path, exclude)]
    if found and not kept:
        raise BridgeError("--exclude leaves out every file.", received=", ".join(exclude), fix="Leave out fewer.")
    if not found:
        raise BridgeError(
            "No Python file was found.",
            expected="files that end in .py or .ipynb, in folders that this user can read",
            received=", ".join(paths),
            fix="Name a Python file, or a folder with Python files.",
        )
    return kept


def _is_excluded(path: Path, patterns: Sequence[str]) -> bool:
    names = [path.as_posix(), *path.parts, *(parent.as_posix() for parent in path.parents)]
    return any(fnmatch.fnmatchcase(name, pattern.rstrip("/")) for pattern in patterns for name in names)


def _below(folder: Path, onerror: Callable[[OSError], None]) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, onerror=onerror):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(files) if name.endswith(".py") or is_notebook(Path(name)))


def distinct_findings(findings: Iterable[SourceFinding]) -> list[SourceFinding]:
    """Returns findings by place; of several for one symbol, only the one with the worst verdict.

    Args:
        findings: Findings in one file.
    """
    order = list(Verdict)
    kept: dict[tuple[int, int, str], SourceFinding] = {}
    for finding in findings:
        key = finding.line, finding.column, finding.symbol
        kept[key] = max(kept.get(key, finding), finding, key=lambda one: order.index(one.verdict))
    return sorted(kept.values())
