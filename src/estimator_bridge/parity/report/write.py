"""Puts report.html and report.json into a folder: both whole, or the folder as it was."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping

from estimator_bridge.compat.checkpoint.writing.staging import Disk, new_folders
from estimator_bridge.errors import BridgeError
from estimator_bridge.parity.result import ParityResult

HTML_NAME, JSON_NAME = "report.html", "report.json"
_MARK = re.compile(rb'"generator"(: | content=)"estimator-bridge"')  # in both files; it survives copies of the folder
_MARK_WITHIN = 1000  # bytes from the start


def write_report(result: ParityResult, folder: pathlib.Path) -> None:
    """Writes report.html and report.json, replacing those of an earlier run.

    Args:
        result: Result of a comparison.
        folder: Folder of the report; it is created if it is missing.

    Raises:
        BridgeError: The folder cannot be written, or a file of these names is not a report. The folder is left as it was.

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
    contents = {
        HTML_NAME: render_html(result).encode("utf-8", "backslashreplace"),
        JSON_NAME: render_json(result).encode("ascii"),
    }
    with _explained(folder), new_folders(folder, Disk()):
        _check_targets(folder)
        _publish({folder / name: content for name, content in contents.items()})


def replace_report(result: ParityResult, folder: pathlib.Path) -> None:
    """Replaces an earlier report; writes nothing if there is none.

    Args:
        result: Result of a comparison that failed.
        folder: Folder of the report.

    Raises:
        BridgeError: The report cannot be written.
    """
    with _explained(folder):
        has_report = any((folder / name).is_file() for name in (HTML_NAME, JSON_NAME))
    if has_report:
        write_report(result, folder)


def _check_targets(folder: pathlib.Path) -> None:
    """Raises OSError if a file or folder of the user has a report's name."""
    page, data = folder / HTML_NAME, folder / JSON_NAME
    for target in (page, data):
        if target.is_dir():
            raise IsADirectoryError(f"{target.name} is a folder")
    for target in filter(pathlib.Path.is_file, (page, data)):
        with target.open("rb") as file:
            marked = _MARK.search(file.read(_MARK_WITHIN))
        if not marked:
            raise FileExistsError(f"{target.name} was not written by estimator-bridge and is kept")
        if target is page:
            return  # report.json belongs to it; the first versions did not mark that


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
        with contextlib.suppress(OSError):  # not every system can sync a folder, and the report is complete without it
            Disk().sync_folder(next(iter(contents)).parent)


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
def _explained(folder: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BridgeError(
            "The report cannot be written.",
            expected="a folder that can be created and written",
            received=f"{folder} ({error.strerror or error})",
            fix="Name another folder with --out.",
        ) from error
