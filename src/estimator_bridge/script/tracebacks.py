"""Exit codes and tracebacks of ``python SCRIPT``, without frames of this package."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path

from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.tf1_surface.advice import warn_about_removed_names
from estimator_bridge.runtime.user_code import file_on_disk, is_ours, is_users

_PACKAGE = Path(__file__).resolve().parents[1]
_RUNNER = _PACKAGE / "script/run.py"
_PLUMBING = frozenset(
    (_PACKAGE / name).resolve()  # legacy is a link in an editable install
    for name in (
        "legacy/distribution/sync_replicas.py",
        "legacy/tf1_surface/tf1_imports.py",
        "legacy/tf1_surface/python_keras.py",
        "legacy/removed_names/patches.py",
        "runtime/estimator_calls.py",
        "runtime/patching.py",
    )
)  # they only pass calls on
_STARTERS = frozenset({importlib.__file__, importlib.util.__file__})  # run between the runner and a package's first line
_GRAPH_ERRORS = "tensorflow.python.framework.errors_impl"

INTERRUPTED = 130  # what a shell reports for a program that ended by Ctrl-C


def run_as_python_does(run: Callable[[], None]) -> int:
    """Calls ``run`` and returns the exit code that Python would have.

    Args:
        run: Function that executes a script.

    Returns:
        0, the code given to ``sys.exit``, or 1 after a traceback on stderr that starts at the script's own code.

    Raises:
        BridgeError: The request was refused; the error has the line of the script that led to it.
    """
    try:
        with naming_lines():
            run()
    except SystemExit as error:
        return _exit_code(error)
    except BridgeError:
        raise
    except KeyboardInterrupt as error:
        _show(error)
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 -- every exception ends a script with a traceback
        for file, line in _find_users_lines(error.__traceback__)[-1:]:
            warn_about_removed_names(error, file, line)
        _show(error)  # last: the end of the output is what a reader looks at
        return 1
    return 0


@contextlib.contextmanager
def naming_lines() -> Iterator[None]:
    """While active, a BridgeError gets the line of the script that led to it."""
    try:
        yield
    except BridgeError as error:
        for file, line in _find_users_lines(error.__traceback__)[-1:]:
            error.asked_by = error.asked_by or f"{file}:{line}"
        raise


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1


def _show(error: BaseException) -> None:
    """Prints an exception by sys.excepthook, which may be the script's own."""
    _fold(error)
    files = [entry.tb_frame.f_code.co_filename for entry in _walk(error.__traceback__)]
    if sys.excepthook is sys.__excepthook__ and any(file_on_disk(file) != file for file in files):
        traceback.print_exception(error)  # Python's own hook finds no lines of cells
    else:
        sys.excepthook(type(error), error, error.__traceback__)


def _fold(error: BaseException, seen: frozenset[int] = frozenset()) -> None:
    """Removes frames of this package from an exception, its causes and its context."""
    is_of_graph = any(base.__module__ == _GRAPH_ERRORS for base in type(error).__mro__)
    error.__traceback__ = _link(_find_shown_frames(list(_walk(error.__traceback__)), is_of_graph))
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        if other is not None and id(other) not in seen:
            _fold(other, seen | {id(error)})


def _find_shown_frames(entries: list[types.TracebackType], is_of_graph: bool) -> list[types.TracebackType]:
    """Returns the frames to show: without the way to the script, and without our frames, unless the error may be ours.

    Args:
        entries: All frames, innermost last.
        is_of_graph: True for an error of an operation in the script's graph, which our frames only execute.
    """
    files = [entry.tb_frame.f_code.co_filename for entry in entries]
    first = max((index + 1 for index, file in enumerate(files) if Path(file).resolve() == _RUNNER), default=0)
    while first < len(files) and (files[first].startswith("<frozen ") or files[first] in _STARTERS or is_ours(files[first])):
        first += 1
    entries, files = entries[first:], files[first:]
    users_last = max((index for index, file in enumerate(files) if is_users(file)), default=-1)
    hidden = [
        (is_ours(file) and (is_of_graph or index < users_last or Path(file).resolve() in _PLUMBING))
        or (file == contextlib.__file__ and index > 0 and is_ours(files[index - 1]))  # a decorator of ours
        for index, file in enumerate(files)
    ]
    return [entry for entry, is_hidden in zip(entries, hidden, strict=True) if not is_hidden]


def _walk(entry: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _link(entries: list[types.TracebackType]) -> types.TracebackType | None:
    following: types.TracebackType | None = None
    for entry in reversed(entries):
        following = types.TracebackType(following, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return following


def _find_users_lines(frames: types.TracebackType | None) -> list[tuple[str, int]]:
    """Returns files and lines of user code on the way to an error, innermost last."""
    return [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(frames) if is_users(frame.filename)]
