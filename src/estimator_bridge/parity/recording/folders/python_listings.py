"""Says where a script lists its model_dir by Python, which is not redirected: the side's checkpoints are not in that list."""

import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator_bridge.runtime.user_code import is_users

_LISTING = {"os.listdir", "os.scandir"}  # what glob, pathlib and os.walk come to
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")


def note_listings(moved: Callable[[str], str], note: Callable[[str], object]) -> None:
    """Notes each folder that the script lists by Python while the side has other files for it; lasts for the process.

    Args:
        moved: Function of a path that returns the path in the side's folder for it, or any other path as it is.
        note: Function that takes a note.
    """
    noted: set[str] = set()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _LISTING or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        path = os.fsdecode(arguments[0])
        if path in noted or not _is_scripts():
            return
        own = moved(path)
        if own != path and Path(own).is_dir() and any(Path(own).iterdir()):
            noted.add(path)
            note(
                f"The script lists {path} by Python, and does not find this side's checkpoints there: what it does with them was not "
                "compared. List the folder by tf.io.gfile (tf.gfile in TensorFlow 1)."
            )

    sys.addaudithook(hook)


def _is_scripts() -> bool:
    """Returns True if the script lists a folder, itself or by a module of the standard library."""
    frame = sys._getframe(2)
    while (
        frame.f_back
        and frame.f_code.co_filename.startswith((_STANDARD_LIBRARY, "<frozen"))
        and "-packages" not in frame.f_code.co_filename
    ):
        frame = frame.f_back
    return is_users(frame.f_code.co_filename)
