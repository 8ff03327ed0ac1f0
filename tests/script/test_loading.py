"""The code of scripts and notebooks."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.script.loading import compile_script
from tests.notebooks import notebook


def run(codes: list[types.CodeType]) -> dict[str, Any]:
    """Runs code in one namespace, as cells of a notebook, and returns it."""
    names: dict[str, Any] = {}
    for code in codes:
        exec(code, names)
    return names


DIVISION = ("a = 1 / 2", "from __future__ import division\nb = 1 / 2", "# coding: latin-1\nc, d = 1 / 2, u'\u00e9'")


@pytest.mark.parametrize(("python2", "expected"), [(True, (0, 0.5, 0.5, "\u00e9")), (False, (0.5, 0.5, 0.5, "\u00e9"))])
def test_cells_share_names_and_imports_from_the_future(python2: bool, expected: tuple[Any, ...], tmp_path: Path) -> None:
    """IPython keeps features on for later cells, and not for those before; a cell's text is no file with an encoding."""
    (tmp_path / "a.ipynb").write_bytes(notebook(*DIVISION))
    names = run(compile_script(str(tmp_path / "a.ipynb"), python2))
    assert tuple(names[name] for name in "abcd") == expected


def test_annotations_of_later_cells_are_text_where_an_earlier_one_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_bytes(notebook("from __future__ import annotations", "def f(x: Missing): pass"))
    names = run(compile_script(str(tmp_path / "a.ipynb")))
    assert names["f"].__annotations__ == {"x": "Missing"}


def test_lines_are_those_of_the_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook("x = 0", "y = 1\n\n1 / x"))
    with pytest.raises(ZeroDivisionError) as caught:
        run(compile_script(str(path)))
    last = caught.traceback[-1]
    assert (str(last.frame.code.raw.co_filename), last.lineno + 1) == (f"{path}:cell 2", 3)
    path.write_bytes(notebook("return 1"))
    with pytest.raises(SyntaxError) as outside:
        compile_script(str(path))
    assert (outside.value.filename, outside.value.lineno) == (f"{path}:cell 1", 1)
