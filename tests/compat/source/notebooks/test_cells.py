"""The reader of notebooks."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.compat.source.notebooks.cells import read_cells, refuse_ipython_lines
from estimator_bridge.compat.source.python2.mending import Idiom
from estimator_bridge.compat.source.reading import read_source
from estimator_bridge.errors import BridgeError
from tests.notebooks import notebook


def test_code_cells_are_numbered_as_jupyter_does() -> None:
    content = notebook("x = 1", "", ("markdown", "# text"), ["y = (\n", "2)"])
    assert [(cell.number, cell.text) for cell in read_cells(content, "a.ipynb")] == [(1, "x = 1\n"), (2, "y = (\n2)\n")]


def test_lines_of_all_cells_are_found_in_their_cells() -> None:
    source = read_source(notebook("import os\n\n", "%matplotlib inline\nos.getcwd()"), "a.ipynb")
    assert source.place(source.tree.body[-1].lineno) == "a.ipynb:cell 2:2"
    assert [source.place(line.line) for line in source.ipython_lines] == ["a.ipynb:cell 2:1"]
    assert source.names.imports[0][0] == "os"


def test_imports_from_the_future_hold_in_later_cells() -> None:
    first = "from __future__ import print_function, division\n"
    with pytest.raises(SyntaxError) as caught:
        read_source(notebook(first, "x = 1\nprint 'a'"), "a.ipynb")
    assert (caught.value.filename, caught.value.lineno) == ("a.ipynb:cell 2", 2), "print is a function in the second cell"
    assert read_source(notebook("x = 1", "x = 1\nprint 'a'"), "a.ipynb").idioms == (Idiom(3, "print"),)


def test_a_syntax_error_has_its_cell_and_line() -> None:
    with pytest.raises(SyntaxError) as caught:
        read_source(notebook("x = 1", "y = 2\nif if"), "a.ipynb")
    assert (caught.value.filename, caught.value.lineno) == ("a.ipynb:cell 2", 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is not JSON"),
        (b'{"cells": [', "this is not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "this is not a notebook"),
        (b'{"cells": {}}', "this is not a notebook"),
        (b'{"cells": []}', "has no code"),
        (notebook("", "  \n"), "has no code"),
        (notebook("x", nbformat=5), "nbformat 5"),
        (notebook("x", nbformat=3), "jupyter nbconvert --to notebook --inplace a.ipynb"),
        (b'{"worksheets": [{"cells": []}], "nbformat": 3}', "old format"),
        (notebook("x <- 1", metadata={"kernelspec": {"language": "R"}}), "not written in Python"),
        (notebook("x", metadata={"language_info": {"name": "julia"}}), "julia"),
        (b'{"cells": [3]}', "broken cell"),
        (b'{"cells": [{"cell_type": "code"}]}', "broken cell"),
        (b'{"cells": [{"cell_type": "code", "source": [3]}]}', "broken cell"),
        (b'{"cells": [{"cell_type": "code", "source": "\\ud800"}]}', "half a character"),
        (b"[" * 100_000, "cannot be read"),
    ],
)
def test_what_is_no_notebook_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(BridgeError, match=message):
        read_cells(content, "a.ipynb")


def test_lines_of_ipython_are_refused_with_cell_and_line() -> None:
    refuse_ipython_lines(notebook("%matplotlib inline\n!pip install a"), "a.ipynb")
    with pytest.raises(BridgeError, match=r"a\.ipynb: %cd \(cell 2, line 2\), !wget \(cell 3, line 1\)") as caught:
        refuse_ipython_lines(notebook("x = 1", "y = 2\n%cd data", "!wget http://host/data"), "a.ipynb")
    assert "os.chdir" in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(["cells", "source"]), inner, max_size=3)
    ),
    max_leaves=10,
)
CELLS = st.fixed_dictionaries(
    {},
    optional={"cell_type": st.sampled_from(["code", "markdown", "x"]) | JSON, "source": st.text() | st.lists(st.text()) | JSON},
)
NOTEBOOKS = st.fixed_dictionaries(
    {}, optional={"cells": st.lists(CELLS | JSON, max_size=4) | JSON, "nbformat": st.integers(2, 5) | JSON, "metadata": JSON}
)


@settings(max_examples=300)
@given(NOTEBOOKS | JSON)
def test_any_json_is_read_or_refused_by_a_message(value: Any) -> None:
    reads(json.dumps(value).encode())


@settings(max_examples=100)
@given(st.binary())
def test_any_bytes_are_read_or_refused_by_a_message(content: bytes) -> None:
    reads(content)


def reads(content: bytes) -> None:
    """Reads a notebook; all errors other than these two fail the test."""
    with contextlib.suppress(BridgeError, SyntaxError):
        read_source(content, "a.ipynb")
