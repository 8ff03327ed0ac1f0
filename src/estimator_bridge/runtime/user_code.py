"""Tells the user's own files from ours, Python's and those of installed packages."""

import functools
import linecache
import re
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_LINKED = ("legacy", "modern", "compat")  # in an editable install, links to folders at the root
_FOLDERS = (_PACKAGE, *((_PACKAGE / name).resolve() for name in _LINKED))
_STANDARD = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
_TENSORFLOWS = ("tensorflow", "tensorflow_estimator", "tf_keras", "keras", "tf_slim", "numpy")
# In any folder, as after pip install --target. A keras.py of the user's own is no package.
_FOUND = [spec for spec in map(PathFinder.find_spec, _TENSORFLOWS) if spec and spec.submodule_search_locations]
_LIBRARIES = tuple(path.resolve() for path in (*_STANDARD, *(Path(spec.origin).parent for spec in _FOUND if spec.origin)))


_CELL = re.compile(r"(.+\.ipynb):cell \d+", re.IGNORECASE)


def cell_file(path: str, number: int) -> str:
    """Returns the name of a notebook's cell as a file, for tracebacks and messages.

    Args:
        path: Path of the notebook.
        number: Number of the cell, from 1.

    Example:
        >>> cell_file("train.ipynb", 3)
        'train.ipynb:cell 3'
    """
    return f"{path}:cell {number}"


def file_on_disk(filename: str) -> str:
    """Returns the file that holds the code of a name in a traceback: for a notebook's cell the notebook.

    Args:
        filename: Name of the file in a traceback.

    Example:
        >>> file_on_disk("train.ipynb:cell 3"), file_on_disk("train.py")
        ('train.ipynb', 'train.py')
    """
    match = _CELL.fullmatch(filename)
    return match.group(1) if match else filename


def read_code(filename: str) -> bytes:
    """Returns the source of code that runs.

    Args:
        filename: Name of the file in a traceback; a cell of the notebook that runs has its own text.

    Raises:
        OSError: The file cannot be read.
    """
    if _CELL.fullmatch(filename):
        return "".join(linecache.getlines(filename)).encode()
    return Path(filename).read_bytes()


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
    path = Path(file_on_disk(filename)).resolve()
    installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    return not installed and path.is_file() and not is_ours(filename) and not _is_in(path, _LIBRARIES)


@functools.cache
def is_ours(filename: str) -> bool:
    """Returns True if a file belongs to estimator-bridge."""
    return _is_in(Path(filename).resolve(), _FOLDERS)


def _is_in(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
