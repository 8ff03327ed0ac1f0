"""The cells of a notebook as a file for the interpreter of the reference, which cannot import what reads notebooks."""

from __future__ import annotations

import json
from pathlib import Path

from estimator_bridge.compat.source.notebooks.cells import read_cells
from estimator_bridge.runtime.user_code import cell_file


def write_cells(notebook: str, folder: Path) -> str:
    """Writes the name and the text of each cell, whose first line is the second of the text, as JSON.

    Args:
        notebook: Path of the notebook.
        folder: Folder for the file.

    Returns:
        Path of the file.

    Raises:
        BridgeError: The file is no notebook that can be read.
    """
    file = str(Path.cwd() / notebook)
    cells = read_cells(Path(notebook).read_bytes(), notebook)
    path = folder / "cells.json"
    path.write_text(json.dumps([(cell_file(file, cell.number), cell.as_file().decode()) for cell in cells]), encoding="utf-8")
    return str(path)
