"""The code cells of a Jupyter notebook as Python.

Cells are numbered as Jupyter numbers them after "Restart & Run All": code cells that are not empty, from 1.
"""

from __future__ import annotations

import bisect
import dataclasses
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimator_bridge.compat.source.notebooks.ipython_lines import IPythonLine, without_ipython_lines
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import read_json
from estimator_bridge.runtime.user_code import cell_file

_EXPECTED = "a Jupyter notebook (nbformat 4) with code cells in Python"
_FEATURES = re.compile(r"^from\s+__future__\s+import\s*\(?([\w, ]+)", re.MULTILINE)
_SHOWN = 12


def is_notebook(path: Path) -> bool:
    """Returns True if a path has the name of a Jupyter notebook.

    Example:
        >>> is_notebook(Path("train.ipynb")), is_notebook(Path("train.py"))
        (True, False)
    """
    return path.suffix.lower() == ".ipynb"


@dataclasses.dataclass(frozen=True)
class Cell:
    """A code cell.

    Attributes:
        number: Number among the code cells that are not empty, from 1.
        text: Its Python, without IPython's lines.
        ipython_lines: Lines that only IPython can run.
        features: Names that earlier cells import from ``__future__``, which IPython keeps on.
    """

    number: int
    text: str
    ipython_lines: tuple[IPythonLine, ...] = ()
    features: tuple[str, ...] = ()

    def as_file(self) -> bytes:
        r"""Returns the cell as a file of its own, with one line in front: the cell's first line is the second.

        Example:
            >>> Cell(2, "print(1 / 2)\n", features=("division",)).as_file()
            b'from __future__ import division\nprint(1 / 2)\n'
        """
        first = f"from __future__ import {', '.join(self.features)}" if self.features else "# coding: utf-8"
        return f"{first}\n{self.text}".encode()


@dataclasses.dataclass(frozen=True)
class CellPlaces:
    """Places in the joined source of a notebook's cells.

    Attributes:
        starts: First line of each cell; none for a file that is no notebook.

    Example:
        >>> CellPlaces((1, 4)).place("train.ipynb", 5), CellPlaces().place("train.py", 5)
        ('train.ipynb:cell 2:2', 'train.py:5')
    """

    starts: tuple[int, ...] = ()

    def find(self, line: int) -> tuple[int, int]:
        """Returns the number of a line's cell and the line in that cell; number 0 in a file that is no notebook.

        Args:
            line: Line of the joined source, from 1.
        """
        number = bisect.bisect_right(self.starts, line)
        return number, line - self.starts[number - 1] + 1 if number else line

    def line(self, line: int) -> str:
        """Returns ``line 5``, or ``line 2 of cell 3`` in a notebook.

        Args:
            line: Line of the joined source, from 1.
        """
        number, line = self.find(line)
        return f"line {line} of cell {number}" if number else f"line {line}"

    def place(self, path: str, line: int) -> str:
        """Returns file, cell and line.

        Args:
            path: Path of the file.
            line: Line of the joined source, from 1.
        """
        number, line = self.find(line)
        return f"{cell_file(path, number) if number else path}:{line}"


NO_CELLS = CellPlaces()
"""The places of a file that is no notebook."""


def read_cells(content: bytes, path: str) -> list[Cell]:
    r"""Reads the code cells of a notebook; runs nothing.

    Args:
        content: Content of the notebook's file.
        path: Path for messages.

    Raises:
        BridgeError: The file is no notebook, is one of nbformat 3, has no code cells, or is for another language.

    Example:
        >>> read_cells(b'{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "y = 2"]}]}', "a.ipynb")
        [Cell(number=1, text='x = 1\ny = 2\n', ipython_lines=(), features=())]
    """
    notebook = _read_notebook(content, path)
    cells: list[Cell] = []
    features: dict[str, None] = {}
    for place, cell in enumerate(notebook["cells"], 1):
        text = _code(cell, place, path)
        if text.strip():
            python, lines = without_ipython_lines(text)
            cells.append(Cell(len(cells) + 1, python.rstrip("\n") + "\n", tuple(lines), tuple(features)))
            features |= {name: None for names in _FEATURES.findall(python) for name in re.findall(r"\w+", names)}
    if not cells:
        raise BridgeError(f"{path}: this notebook has no code.", expected=_EXPECTED, fix="Name another file.")
    return cells


def refuse_ipython_lines(content: bytes, path: str) -> None:
    """Checks that a notebook can be run as a script.

    Args:
        content: Content of the notebook's file.
        path: Path for messages.

    Raises:
        BridgeError: It is no notebook that can be read, or it has lines without which it would do something else.
    """
    refused = [(cell, line) for cell in read_cells(content, path) for line in cell.ipython_lines if line.advice]
    if refused:
        shown = [f"{line.symbol} (cell {cell.number}, line {line.line})" for cell, line in refused[:_SHOWN]]
        more = len(refused) - len(shown)
        raise BridgeError(
            "The notebook has lines that only IPython can run.",
            expected="Python, or lines that a script can do without, e.g. %matplotlib inline and !pip install",
            received=f"{path}: " + ", ".join([*shown, *([f"and {more} more"] if more else [])]),
            fix=" ".join(dict.fromkeys(line.advice for _, line in refused)),
        )


def in_cell(error: SyntaxError) -> SyntaxError:
    """Returns the error of a cell's file with its line in the cell.

    Args:
        error: Error in the text that ``Cell.as_file`` gives.
    """
    error.lineno = max((error.lineno or 1) - 1, 1)
    error.end_lineno = max((error.end_lineno or 1) - 1, error.lineno)
    return error


def _read_notebook(content: bytes, path: str) -> dict[str, Any]:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BridgeError(f"{path}: this notebook is not UTF-8.", expected=_EXPECTED, received=error) from None
    notebook = read_json(text, path, _EXPECTED)
    version = notebook.get("nbformat", 4) if isinstance(notebook, dict) else 4
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    is_old = "worksheets" in notebook if isinstance(notebook, dict) else False
    if is_old or (isinstance(version, int) and version < 4):
        command = shlex.join(["jupyter", "nbconvert", "--to", "notebook", "--inplace", path])
        raise BridgeError(
            f"{path}: this notebook has an old format.",
            expected=_EXPECTED,
            received=f"nbformat {version}",
            fix=f"Convert it with `{command}`.",
        )
    if version != 4 or not isinstance(cells, list):
        received = f"nbformat {version}" if version != 4 else "JSON without a list of cells"
        raise BridgeError(f"{path}: this is not a notebook.", expected=_EXPECTED, received=received)
    for language in _languages(notebook.get("metadata")):
        if not language.lower().startswith(("python", "ipython")):
            raise BridgeError(f"{path}: this notebook is not written in Python.", expected=_EXPECTED, received=language)
    return notebook


def _languages(metadata: Any) -> Iterator[str]:
    """Yields the names of the language that a notebook gives."""
    for part, key in (("kernelspec", "language"), ("language_info", "name")):
        value = metadata.get(part) if isinstance(metadata, dict) else None
        name = value.get(key) if isinstance(value, dict) else None
        if isinstance(name, str) and name:
            yield name


def _code(cell: Any, place: int, path: str) -> str:
    """Returns the text of a code cell; empty for other cells."""
    kind = cell.get("cell_type") if isinstance(cell, dict) else None
    if isinstance(kind, str) and kind in {"markdown", "raw", "heading"}:
        return ""
    source = cell.get("source") if isinstance(cell, dict) else None
    given = source if isinstance(source, list) else [source]
    lines = [line for line in given if isinstance(line, str)]
    if kind != "code" or len(lines) < len(given):
        raise BridgeError(
            f"{path}: this notebook has a broken cell.",
            expected='cells with "cell_type" and "source"',
            received=f"number {place} of its cells, which has no text" if kind == "code" else f"number {place} of its cells",
        )
    text = "".join(lines).replace("\r\n", "\n").replace("\r", "\n")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BridgeError(
            f"{path}: this notebook has half a character.",
            expected="text",
            received=f"{error.object[error.start]!r} in number {place} of its cells",
            fix="Write the whole character.",
        ) from None
    return text
