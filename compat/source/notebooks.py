"""Jupyter notebooks, which are JSON with code inside, not scripts."""

from __future__ import annotations

import shlex
from pathlib import Path

from estimator_bridge.errors import BridgeError


def is_notebook(path: Path) -> bool:
    """Returns True if a path has the name of a notebook.

    Example:
        >>> is_notebook(Path("train.ipynb")), is_notebook(Path("train.py"))
        (True, False)
    """
    return path.suffix.lower() == ".ipynb"


def export_advice(path: Path) -> str:
    """Returns a sentence with the command that makes a script of a notebook."""
    command = shlex.join(["jupyter", "nbconvert", "--to", "script", str(path)])
    return f"Export it with `{command}`, take out get_ipython() lines, and name the script."


def refuse_notebook(path: Path) -> None:
    """Checks that a file is not a notebook.

    Args:
        path: File that is to be run or judged.

    Raises:
        BridgeError: The file is a notebook.
    """
    if is_notebook(path):
        raise BridgeError(
            "A Jupyter notebook is not a Python script.",
            expected="the path of a Python file",
            received=path,
            fix=export_advice(path),
        )
