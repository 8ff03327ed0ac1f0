"""Redirects what a script does by tf.gfile in its model_dir: no file of the user's is overwritten or deleted."""

import glob
import inspect
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator_bridge.runtime.patching import wrap
from estimator_bridge.runtime.user_code import is_users

_READING = (
    "BufferedInputStream",
    "FileExists",
    "GetChildren",
    "GetMatchingFiles",
    "IsDirectory",
    "ReadFileToString",
    "Stat",
)
"""What tf.gfile calls to read; each takes a path first."""
_DELETING = ("DeleteFile", "DeleteRecursively")
_MAKING = ("CreateDir", "RecursivelyCreateDir")
REPLACED = (*_READING, *_DELETING, *_MAKING, "WritableFile", "CopyFile", "RenameFile")
"""What tf.gfile calls, and ``redirect_files`` replaces."""


def redirect_files(moved: Callable[[str], str]) -> None:
    """Redirects tf.gfile and ``shutil.rmtree`` until the process ends.

    A new file that a script writes stays where the script wrote it, since Python may read it there. What TensorFlow itself writes stays,
    too: a Saver that is given a path writes its list of checkpoints beside them.

    Args:
        moved: Function of a path that returns the path in the side's folder for it, or any other path as it is.
    """
    from tensorflow.python.lib.io import file_io

    files = _Files(moved)

    def if_scripts(change: Callable[..., Any]) -> Callable[..., Any]:
        def call(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            return change(original, *args, **kwargs) if _is_scripts(file_io.__file__) else original(*args, **kwargs)

        return call

    wrap(
        file_io._pywrap_file_io,
        **dict.fromkeys(_READING, files.read),
        **dict.fromkeys(_DELETING, if_scripts(files.delete)),
        **dict.fromkeys(_MAKING, if_scripts(files.make)),
        WritableFile=if_scripts(files.write),
        CopyFile=if_scripts(files.copy),
        RenameFile=if_scripts(files.rename),
    )
    wrap(shutil, rmtree=files.delete)


class _Files:
    """Files of the side in place of those in the script's model_dirs; paths are text or bytes, as they are given.

    Args:
        moved: Function of a path that returns the path in the side's folder for it, or any other path as it is.
    """

    def __init__(self, moved: Callable[[str], str]) -> None:
        self._moved = moved
        self._gone: set[str] = set()  # the user's own paths that the script has deleted or replaced

    def read(self, original: Callable[..., Any], path: Any, *args: Any) -> Any:
        """Reads the side's file, or the user's if the side has none."""
        return original(self._present(path), *args)

    def delete(self, original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
        """Deletes the side's file; the user's own is only gone for the script."""
        own = self._own(path)
        if own == path:
            return original(path, *args, **kwargs)
        is_users_alone = _exists(path) and not _exists(own)
        self._gone.add(_real(path))
        return None if is_users_alone else original(own, *args, **kwargs)

    def write(self, original: Callable[..., Any], path: Any, *args: Any) -> Any:
        """Opens a copy of a file of the user's."""
        own = self._own(path)
        if own == path or not _exists(path):
            return original(path, *args)
        if not _exists(own):
            _copy(path, own)  # to which the script may append
        self._gone.add(_real(path))
        return original(own, *args)

    def copy(self, original: Callable[..., Any], source: Any, target: Any, *args: Any) -> Any:
        """Copies into the side's folder."""
        own = self._own(target)
        if own != target:
            _parent(own).mkdir(parents=True, exist_ok=True)
        return original(self._present(source), own, *args)

    def rename(self, original: Callable[..., Any], source: Any, target: Any, *args: Any) -> Any:
        """Renames the side's file, or a copy of the user's."""
        if self._present(source) != self._own(source) and _exists(source):
            _copy(source, self._own(source))
        self._gone.add(_real(source))
        return self.copy(original, source, target, *args)

    def make(self, original: Callable[..., Any], path: Any, *args: Any) -> None:
        """Makes a folder for files of Python's, and one for the side's."""
        original(path, *args)
        Path(os.fsdecode(self._own(path))).mkdir(parents=True, exist_ok=True)

    def _own(self, path: Any) -> Any:
        own = self._moved(os.fsdecode(path))
        return os.fsencode(own) if isinstance(path, bytes) else own

    def _present(self, path: Any) -> Any:
        own = self._own(path)
        return own if glob.glob(own) or _real(path) in self._gone else path  # noqa: PTH207 -- a pattern from the root


def _exists(path: Any) -> bool:
    return Path(os.fsdecode(path)).exists()


def _real(path: Any) -> str:
    return os.path.realpath(os.fsdecode(path))


def _parent(path: Any) -> Path:
    return Path(os.fsdecode(path)).parent


def _copy(source: Any, target: Any) -> None:
    _parent(target).mkdir(parents=True, exist_ok=True)
    copy = shutil.copytree if Path(os.fsdecode(source)).is_dir() else shutil.copy
    copy(os.fsdecode(source), os.fsdecode(target))


def _is_scripts(file_io: str) -> bool:
    """Returns True if the script calls tf.gfile, and not TensorFlow itself."""
    frame = inspect.currentframe()
    while frame and (frame.f_code.co_filename == file_io or frame.f_globals["__name__"].startswith("estimator_bridge.")):
        frame = frame.f_back
    return bool(frame and is_users(frame.f_code.co_filename))
