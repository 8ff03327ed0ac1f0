"""Puts report.html and report.json into a folder: both whole, or the folder as it was."""

from __future__ import annotations

import contextlib
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
    from estimator_bridge.parity.report.strict_json import render_json

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
        staged = {target: stack.enter_context(_staged(target, content)) for target, content in contents.items()}
        for target, source in staged.items():
            # An exception puts replaced files back, the last one first.
            stack.enter_context(_restored_on_error(target))
            source.replace(target)
        _sync_folder(next(iter(contents)).parent)


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


@contextlib.contextmanager
def _staged(target: pathlib.Path, content: bytes) -> Iterator[pathlib.Path]:
    """Yields a file beside ``target`` with ``content``, synced to disk; it is gone in the end."""
    path = _aside(target)
    try:
        # Not tempfile: only the owner can read its files, and a report is to be shared.
        with path.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _restored_on_error(target: pathlib.Path) -> Iterator[None]:
    backup = _aside(target)
    with contextlib.ExitStack() as stack:
        stack.callback(backup.unlink, missing_ok=True)
        if target.is_file():
            shutil.copy2(target, backup)
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                if backup.exists():
                    backup.replace(target)
                else:
                    target.unlink()
            raise


def _aside(target: pathlib.Path) -> pathlib.Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")


def _sync_folder(folder: pathlib.Path) -> None:
    # So that the new names survive a power cut. Not every system can sync a folder, and the report is complete without it.
    with contextlib.suppress(OSError):
        Disk().sync_folder(folder)
