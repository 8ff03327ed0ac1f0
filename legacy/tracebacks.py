"""Exit codes and tracebacks as ``python SCRIPT`` gives them, without the frames that are ours."""

from __future__ import annotations

import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path

from estimator_bridge.errors import BridgeError

_OURS = Path(__file__).resolve().parent.parent  # in an editable install this is the repository, else the package
_FOLDERS = tuple(_OURS / name for name in ("legacy", "modern", "compat", "parity", "cli", "src"))


def run_as_python_does(run: Callable[[], None]) -> int:
    """Calls ``run`` and answers with the exit code that Python would have ended with.

    Args:
        run: executes a script.

    Returns:
        0, the code given to ``sys.exit``, or 1 after a traceback on stderr that starts at the script's own code.

    Raises:
        BridgeError: a refusal, with the line of the script that led to it.
    """
    try:
        run()
    except SystemExit as error:
        return _exit_code(error)
    except BridgeError as error:
        error.args = (f"{error}{_asked_by(error.__traceback__)}",)
        raise
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # noqa: BLE001 -- whatever ends a script ends it with a traceback
        _print_folded(error)
        return 1
    return 0


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1


def _print_folded(error: BaseException) -> None:
    frames = error.__traceback__
    while frames is not None and _is_runner(frames.tb_frame):
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)


def _asked_by(frames: types.TracebackType | None) -> str:
    """The innermost line of user code on the way to a refusal."""
    lines = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(frames) if _is_users(frame.filename)]
    return f"\n  asked by: {lines[-1]}" if lines else ""


def _is_runner(frame: types.FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith("<frozen ") or Path(name).name == "contextlib.py" or _is_ours(Path(name).resolve())


def _is_users(filename: str) -> bool:
    path = Path(filename).resolve()
    installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts) or path.is_relative_to(sys.base_prefix)
    return path.exists() and not installed and not _is_ours(path)


def _is_ours(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _FOLDERS)
