"""Lines that only IPython can run."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.compat.source.notebooks.ipython_lines import without_ipython_lines


def replaced(text: str) -> list[tuple[int, str, bool]]:
    """Returns line, name and whether it is refused, of each line of IPython; what is left must be Python with as many lines."""
    python, lines = without_ipython_lines(text)
    ast.parse(python)
    assert python.count("\n") == text.count("\n")
    return [(line.line, line.symbol, bool(line.advice)) for line in lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", []),
        ("%matplotlib inline\nx = 1", [(1, "%matplotlib", False)]),
        ("!pip install a \\\n  b\nx = 1", [(1, "!pip", False)]),
        ("!python -m pip install a", [(1, "!python", False)]),
        ("!python train.py", [(1, "!python", True)]),
        ("!ls; rm -r data", [(1, "!ls", True)]),
        ("!cat a > b", [(1, "!cat", True)]),
        ("if True:\n    !wget http://host/data\nelse:\n    %cd data", [(2, "!wget", True), (4, "%cd", True)]),
        ("files = !ls", [(1, "!ls", True)]),
        ("home = %env HOME", [(1, "%env", True)]),
        ("a, b = 1, 2\n%time c = a % b", [(2, "%time", False)]),
        ("%%time\nx = 1\n%matplotlib inline", [(1, "%%time", False), (3, "%matplotlib", False)]),
        ("%%bash\nrm -r data", [(1, "%%bash", True)]),
        ("%%html\n<p>not Python", [(1, "%%html", False)]),
        ("%%capture\n%%time\nx = 1", [(1, "%%capture", False), (2, "%%time", False)]),
        ("%tensorflow_version 1.x", [(1, "%tensorflow_version", False)]),
        ("%tensorflow_version 2.x", [(1, "%tensorflow_version", True)]),
        ("%pylab inline\nx = 1", [(1, "%pylab", False)]),
        ("tf.train?", [(1, "?", False)]),
        ("?tf.train", [(1, "?", False)]),
        ("  x = 1\n  %matplotlib inline", [(2, "%matplotlib", False)]),
    ],
)
def test_lines_are_left_out_or_refused(text: str, expected: list[tuple[int, str, bool]]) -> None:
    assert replaced(text) == expected


@pytest.mark.parametrize("option", ["inline", "--no-import-all inline"])
def test_pylab_binds_what_ipython_binds(option: str) -> None:
    python, _ = without_ipython_lines(f"%pylab {option}")
    names = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(python))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert names - {"*"} == {"matplotlib", "mlab", "numpy", "np", "plt", "pylab", "pyplot"}
    assert ("*" in names) == (option == "inline")


@pytest.mark.parametrize(
    "text",
    [
        'x = ("%s"\n% 3)\n',
        'text = """\n%matplotlib inline\n!rm -r data\n"""\n',
        "x = 7 \\\n% 4\n",
        "x = [\n1\n% 2]  # (\n",
    ],
)
def test_python_stays_as_it_is(text: str) -> None:
    assert without_ipython_lines(text) == (text, [])
    with_magic = f"{text}%matplotlib inline"
    assert without_ipython_lines(with_magic)[0] == f"{text}pass"


def test_the_statement_of_a_time_magic_is_run() -> None:
    assert without_ipython_lines("for i in a:\n    %time f(i)")[0] == "for i in a:\n    f(i)"


@settings(max_examples=300)
@given(st.text(alphabet="%!?=()[]'\"\\ \n#abpip:") | st.text())
def test_any_text_keeps_its_lines(text: str) -> None:
    python, _ = without_ipython_lines(text)
    assert python.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text", ['\\"' * 50_000, " " * 100_000 + "$", "a" * 100_000 + "$ = b", "?" * 100_000, "!ls\n" * 20_000 + "$"]
)
def test_long_texts_take_linear_time(text: str) -> None:
    without_ipython_lines(text)
