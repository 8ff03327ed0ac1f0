"""Notebooks for tests."""

from __future__ import annotations

import json
from typing import Any


def notebook(*cells: str | list[str] | tuple[str, str], nbformat: int = 4, metadata: Any = None) -> bytes:
    """Returns the content of a notebook's file.

    Args:
        cells: Texts of code cells, as text or as lines; or type and text of other cells.
        nbformat: Version of the format.
        metadata: Metadata of the notebook.
    """
    listed = [
        {"cell_type": cell[0], "source": cell[1]} if isinstance(cell, tuple) else {"cell_type": "code", "source": cell}
        for cell in cells
    ]
    return json.dumps({"cells": listed, "nbformat": nbformat, "metadata": metadata or {}}).encode()
