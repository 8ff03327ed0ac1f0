"""Tells the user's own files from ours, Python's and those of installed packages."""

import functools
import sysconfig
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_LINKED = ("legacy", "modern", "compat")  # in an editable install, links to folders at the root
_FOLDERS = (_PACKAGE, *((_PACKAGE / name).resolve() for name in _LINKED))
_LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))


@functools.cache
def is_users(filename: str) -> bool:
    """Returns True if a file is neither ours, nor Python's, nor part of an installed package.

    Args:
        filename: Name of the file in a traceback.

    Example:
        >>> import enum
        >>> is_users(enum.__file__), is_users(__file__), is_users("<string>")
        (False, False, False)
    """
    path = Path(filename).resolve()
    installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    return path.is_file() and not installed and not is_ours(filename) and not _is_in(path, _LIBRARIES)


@functools.cache
def is_ours(filename: str) -> bool:
    """Returns True if a file belongs to estimator-bridge."""
    return _is_in(Path(filename).resolve(), _FOLDERS)


def _is_in(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
