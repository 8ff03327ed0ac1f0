"""Writes report.html and report.json, and the summaries that are asked for: all of them whole, or everything as it was."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pathlib
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence

from estimator_bridge.compat.checkpoint.writing.staging import Disk, new_folders
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.result import ParityResult

HTML_NAME, JSON_NAME = "report.html", "report.json"
_MARK = re.compile(rb'"generator"(: | content=| value=)"estimator-bridge"')  # in every file; it survives copies of the folder
_MARK_WITHIN = 1000  # bytes from the start


@dataclasses.dataclass(frozen=True)
class Summaries:
    """The files that programs of a CI job read.

    Attributes:
        junit: Path of the JUnit XML; None for no such file.
        markdown: Path of the Markdown; None for no such file.
    """

    junit: pathlib.Path | None = None
    markdown: pathlib.Path | None = None

    def render(self, result: ParityResult) -> dict[pathlib.Path, bytes]:
        """Returns the content of each file."""
        from estimator_bridge.parity.report.junit import render_junit
        from estimator_bridge.parity.report.markdown import render_markdown

        kinds = ((self.junit, render_junit), (self.markdown, render_markdown))
        return {path: render(result).encode("utf-8", "backslashreplace") for path, render in kinds if path is not None}


def write_report(result: ParityResult, folder: pathlib.Path, summaries: Summaries | None = None) -> None:
    """Writes report.html, report.json and summaries, replacing those of an earlier run.

    Args:
        result: Result of a comparison.
        folder: Folder of the report; it is created if it is missing, as the folders of the summaries are.
        summaries: Further files.

    Raises:
        BridgeError: A file cannot be written, or exists and was not written by this function. Every file is left as it was.

    Example:
        >>> from estimator_bridge.parity.result import ParityResult, Thresholds
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_report(ParityResult(("train.py",), "replay", "equal", Thresholds()), pathlib.Path(folder, "parity"))
        ...     sorted(path.name for path in pathlib.Path(folder, "parity").iterdir())
        ['report.html', 'report.json']
    """
    # Imported here, so that a mistake in the command line does not load jinja2.
    from estimator_bridge.parity.report.page import render_html
    from estimator_bridge.parity.report.summary import render_json

    # Both escape lone surrogates; this is for any other bytes from a terminal.
    report = {
        folder / HTML_NAME: render_html(result).encode("utf-8", "backslashreplace"),
        folder / JSON_NAME: render_json(result).encode("ascii"),
    }
    others = (summaries or Summaries()).render(result)
    fix = "Name other paths with --out, --junit and --markdown." if others else "Name another folder with --out."
    with _explained(folder, fix, *others), contextlib.ExitStack() as stack:
        for parent in dict.fromkeys(path.parent for path in (*report, *others)):
            stack.enter_context(new_folders(parent, Disk()))
        _check_targets(folder, others)
        _publish(report | others)


def write_page(path: pathlib.Path, content: str) -> None:
    """Writes one page, replacing that of an earlier run.

    Args:
        path: Path of the page; its folder is created if it is missing.
        content: HTML with the mark of this package, a meta element.

    Raises:
        BridgeError: The file cannot be written, or exists and was not written by this package.
    """
    with _explained(path, "Name another path."), new_folders(path.parent, Disk()):
        _check_marks([path])
        _publish({path: content.encode("utf-8", "backslashreplace")})


def check_page(path: pathlib.Path) -> None:
    """Raises BridgeError if a page cannot have this path, since a file or folder of the user has it."""
    with _explained(path, "Name another path."):
        _check_marks([path])


def replace_report(result: ParityResult, folder: pathlib.Path, summaries: Summaries | None = None) -> None:
    """Replaces an earlier report; writes nothing if there is none.

    Args:
        result: Result of a comparison that failed.
        folder: Folder of the report.
        summaries: Further files.

    Raises:
        BridgeError: The report cannot be written.
    """
    chosen = summaries or Summaries()
    paths = (folder / HTML_NAME, folder / JSON_NAME, *filter(None, (chosen.junit, chosen.markdown)))
    with _explained(folder, "Name another folder with --out."):
        has_report = any(path.is_file() for path in paths)
    if has_report:
        write_report(result, folder, summaries)


def _check_targets(folder: pathlib.Path, others: Iterable[pathlib.Path]) -> None:
    """Raises OSError if a file or folder of the user has the name of a file to write."""
    page, data = folder / HTML_NAME, folder / JSON_NAME
    if data.is_dir():
        raise IsADirectoryError(f"{data.name} is a folder")
    # The data belong to a page that is there; the first versions did not mark them.
    _check_marks((page, *others) if page.is_file() else (page, data, *others))


def _check_marks(targets: Sequence[pathlib.Path]) -> None:
    for target in targets:
        if target.is_dir():
            raise IsADirectoryError(f"{target.name} is a folder")
    for target in filter(pathlib.Path.is_file, targets):
        with target.open("rb") as file:
            marked = _MARK.search(file.read(_MARK_WITHIN))
        if not marked:
            raise FileExistsError(f"{target.name} was not written by estimator-bridge and is kept")


def _publish(contents: Mapping[pathlib.Path, bytes]) -> None:
    with contextlib.ExitStack() as stack:
        staged = {target: _aside(target, stack) for target in contents}
        for target, source in staged.items():
            # Not tempfile: only the owner can read its files, and a report is to be shared.
            with source.open("xb") as file:
                file.write(contents[target])
                file.flush()
                os.fsync(file.fileno())
        for target, source in staged.items():
            backup = _aside(target, stack)
            if target.is_file():
                shutil.copy2(target, backup)
            stack.push(functools.partial(_put_back, target, backup))  # the last one first
            source.replace(target)
        for folder in {target.parent for target in contents}:
            with contextlib.suppress(OSError):  # not every system can sync a folder, and the report is complete without it
                Disk().sync_folder(folder)


def _aside(target: pathlib.Path, stack: contextlib.ExitStack) -> pathlib.Path:
    """Returns the path of a file beside ``target`` that is gone in the end."""
    path = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    stack.callback(path.unlink, missing_ok=True)
    return path


def _put_back(target: pathlib.Path, backup: pathlib.Path, kind: type[BaseException] | None, *_: object) -> None:
    """Puts a file back if there was an exception of some kind; removes the file if there was none before."""
    if kind is not None:
        with contextlib.suppress(OSError):
            if backup.exists():
                backup.replace(target)
            else:
                target.unlink()


@contextlib.contextmanager
def _explained(folder: pathlib.Path, fix: str, *others: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BridgeError(
            "The report cannot be written.",
            expected="a place that can be created and written",
            received=f"{', '.join(map(str, (folder, *others)))} ({error.strerror or error})",
            fix=fix,
        ) from error
