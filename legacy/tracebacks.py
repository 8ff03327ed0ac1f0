"""Exit codes and tracebacks as ``python SCRIPT`` gives them, without the frames that are ours."""

from __future__ import annotations

import os
import sys
import traceback
import types
from collections.abc import Callable

from estimator_bridge.errors import BridgeError

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


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
    except BaseException as error:
        _print_folded(error)
        return 1
    return 0


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
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
    return os.path.abspath(name).startswith(_OURS) or name.startswith("<frozen ") or os.path.basename(name) == "contextlib.py"


def _is_users(filename: str) -> bool:
    path = os.path.abspath(filename)
    installed = any(part in ("site-packages", "dist-packages") for part in path.split(os.sep))
    return os.path.exists(path) and not installed and not path.startswith((_OURS, sys.base_prefix))
