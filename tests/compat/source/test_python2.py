"""Finds Python 2 in files and rewrites it as Python 3; the expected output of the program is Python 2.7's own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from estimator_bridge.compat.source.python2.mending import mend
from estimator_bridge.compat.source.verdicts import Kind, Verdict
from tests.compat.source.reading import findings, verdicts

# One line of Python 2 that Python 3 does not parse, and the word for it.
SYNTAX = [
    ("print 'a'", "print statement"),
    ("print >>err, x", "print statement"),
    ("try:\n    pass\nexcept ValueError, e:\n    pass", "except X, e"),
    ("raise ValueError, 'x'", "raise X, value"),
    ("y = `x`", "backticks"),
    ("y = 1 <> 2", "<>"),
    ("y = 0777", "octal or long literal"),
    ("y = 10L", "octal or long literal"),
    ("exec 'x' in y", "exec statement"),
    ("def f(a, (b, c)): pass", "tuple as a parameter"),
    ("if x:\n\ty = 1\n        z = 2", "mixed tabs"),
]


@pytest.mark.parametrize(("source", "word"), SYNTAX)
def test_syntax(source: str, word: str) -> None:
    last = len(source.splitlines())
    found = findings(f"first = 1\n{source}\n")
    assert word in {one.symbol for one in found}
    assert all(one.verdict is Verdict.HUMAN and 2 <= one.line <= last + 1 for one in found)
    assert {one.verdict for one in findings(source, python2=True)} == {Verdict.MENDED}
    ast.parse(mend(source.encode()).text)


# A line, and the symbol that is reported; None where nothing is.
IDIOMS = [
    ("unicode(x)", "unicode"),
    ("for i in xrange(3): pass", "xrange"),
    ("reduce(f, x)", "reduce"),
    ("isinstance(x, basestring)", "basestring"),
    ("long(3)", "long"),
    ("raw_input()", "raw_input"),
    ("from functools import reduce\nreduce(f, x)", None),
    ("try:\n    unicode\nexcept NameError:\n    unicode = str", None),
    ("import sys\nif sys.version_info[0] == 2:\n    text = unicode", None),
    ("unicode = str\nunicode(x)", None),
    ("def f(unicode): return unicode", None),
    ("d.iteritems()", ".iteritems()"),
    ("d.has_key(k)", ".has_key()"),
    ("d.has_key()", None),
    ("import six\nsix.iteritems(d)", None),
    ("import urllib2", "import urllib2"),
    ("import cPickle as pickle", "import cPickle"),
    ("from StringIO import StringIO", "import StringIO"),
    ("from Queue import Queue", "import Queue"),
    ("import ConfigParser", "import ConfigParser"),
    ("try:\n    import cPickle\nexcept ImportError:\n    import pickle", None),
    ("d.keys()[0]", "[...]"),
    ("d.keys().sort()", ".sort"),
    ("k = d.keys()\nk.sort()", ".sort"),
    ("k = list(d.keys())\nk.sort()", None),
    ("sorted(d.keys())", None),
]


@pytest.mark.parametrize(("source", "symbol"), IDIOMS)
def test_idioms(source: str, symbol: str | None) -> None:
    found = findings(source, Kind.PYTHON2)
    assert [one.symbol for one in found] == ([symbol] if symbol else [])
    assert {one.verdict for one in findings(source, Kind.PYTHON2, python2=True)} <= {Verdict.MENDED}


DIVISIONS = [
    ("for i in range(len(x) / 2): pass", True),
    ("n = len(x)\nfor i in range(n / 2): pass", True),
    ("half = len(x) / 2\ny = x[:half]", True),
    ("x[len(x) / 2]", True),
    ("import numpy as np\nnp.zeros((10 / 2, 3))", True),
    ("import tensorflow as tf\ntf.layers.dense(x, 64 / 2)", True),
    ("import tensorflow as tf\ntf.layers.dense(x, units=64 / 2)", True),
    ("import tensorflow as tf\ntf.reshape(x, [-1, 28 / 4 * 8])", True),
    ("estimator.train(input_fn, steps=1000 / 10)", True),
    ("x.shape[0]\ny.reshape(x.shape[0] / 2, -1)", True),
    ("from __future__ import division\nx[len(x) / 2]", False),
    ("for i in range(len(x) // 2): pass", False),
    ("rate = 1 / 2", False),
    ("x[int(len(x) / 2)]", False),
    ("def f(n): return range(n / 2)", False),  # nothing says that n is whole
    ("n = 3\nn = 2.0\nrange(n / 2)", False),
]


@pytest.mark.parametrize(("source", "reported"), DIVISIONS)
def test_division_that_becomes_a_size(source: str, reported: bool) -> None:
    assert [one.symbol for one in findings(source, Kind.PYTHON2)] == (["/"] if reported else [])


# Lines that end in `# !` are to be reported, and no others.
ONE_SHOTS = {
    "a model_fn called again": """
        hidden = map(int, flags.split(","))
        def model_fn(features):
            for units in hidden:  # !
                features = dense(features, units)
    """,
    "params": """
        params = {"hidden_units": map(int, flags.split(","))}  # !
    """,
    "an Estimator's argument": """
        import tensorflow as tf
        tf.estimator.DNNClassifier(hidden_units=map(int, "12"), feature_columns=[])  # !
    """,
    "an attribute": """
        class Model:
            def __init__(self):
                self.layers = map(int, "12")  # !
    """,
    "read twice": """
        pairs = zip(a, b)
        first = list(pairs)
        second = list(pairs)  # !
    """,
    "read in a loop": """
        pairs = zip(a, b)
        for epoch in range(3):
            for pair in pairs:  # !
                step(pair)
    """,
    "made in the loop": """
        for epoch in range(3):
            pairs = zip(a, b)
            for pair in pairs:
                step(pair)
    """,
    "used as a list": """
        units = filter(None, sizes)
        n = len(units)  # !
        first = units[0]  # !
        more = units + [3]  # !
        if not units: pass  # !
        units.append(1)  # !
    """,
    "at once": """
        len(map(f, x))  # !
        map(f, x)[0]  # !
        zip(a, b) + zip(c, d)  # !
        map(print, x)  # !
    """,
    "an array": """
        import numpy as np
        np.array(map(float, x))  # !
        np.array(list(map(float, x)))
    """,
    "returned": """
        def units():
            return map(int, flags)
        def build():
            sizes = units()
            return len(sizes)  # !
    """,
    "returned and read once": """
        def units():
            return map(int, flags)
        sizes = list(units())
    """,
    "two names": """
        first = second = map(int, flags)
        for unit in first: pass
        n = len(second)  # !
        total = sum(second)  # !
    """,
    "made a list": """
        units = map(int, flags)
        units = list(units)
        print(len(units), units[0], units)
    """,
    "read once": """
        optimizer.apply_gradients(zip(gradients, variables))
        table = dict(zip(a, b))
        print(*map(str, x))
        for pair in zip(a, b): pass
        a, b = zip(*pairs)
        text = ",".join(map(str, x))
        total = sum(map(int, x))
        squares = [x for x in map(f, y)]
    """,
    "one branch or the other": """
        def f(sort):
            pairs = zip(a, b)
            if sort:
                return sorted(pairs)
            return list(pairs)
    """,
    "either arm": """
        pairs = zip(a, b)
        if sort:
            x = sorted(pairs)
        else:
            x = list(pairs)
    """,
    "its own map": """
        def map(f, x): return [f(y) for y in x]
        units = map(int, flags)
        len(units)
    """,
    "six's": """
        from six.moves import map
        units = map(int, flags)
        len(units)  # !
    """,
    "steps": """
        names = map(str, x)
        while True:
            name = next(names)
    """,
    "a condition": """
        units = map(int, flags) if flags else []
        len(units)  # !
    """,
}


@pytest.mark.parametrize("source", ONE_SHOTS.values(), ids=ONE_SHOTS)
def test_iterators_that_python2_made_lists(source: str) -> None:
    lines = [number for number, line in enumerate(source.lstrip("\n").splitlines(), 1) if line.endswith("# !")]
    assert sorted({line for line, _, _ in verdicts(source, Kind.PYTHON2)}) == lines
    assert {one.verdict for one in findings(source, Kind.PYTHON2, python2=True)} <= {Verdict.MENDED}


def test_lines_of_a_mended_file_are_the_files_own() -> None:
    source = b'import urllib2\nfrom urllib2 import urlopen, HTTPError, quote\ntext = """\n\tx"""\nclass A:\n    __metaclass__ = M\n    def f(self, (a, b)):\n\treturn 1 / a\nlast = 1\n'
    tree = mend(source).tree()
    found = {
        type(node).__name__: node.lineno
        for node in ast.walk(tree)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.Return))
    }
    assert found == {"ClassDef": 5, "FunctionDef": 7, "Return": 8}
    assert tree.body[-1].lineno == 9
    assert "\n\tx" in mend(source).text, "a tab inside a string stays"


@pytest.mark.parametrize("source", [b"def (:", b"print 'a", b"\x00", b"if x:\n   y\n  z\n", b"x = (" * 400])
def test_what_is_neither(source: bytes) -> None:
    with pytest.raises(SyntaxError):
        mend(source)


def test_a_program_of_another_encoding() -> None:
    assert "é" in mend("# -*- coding: latin-1 -*-\nprint 'é'\n".encode("latin-1")).text
    assert "é" in mend("print 'é'\n".encode()).text
    assert "é" in mend("print 'é'\n".encode("latin-1")).text, "which Python 2 refused, and an editor wrote"


def test_imports_beside_a_module_of_a_package(tmp_path: Path) -> None:
    for name in ("__init__.py", "beside.py"):
        (tmp_path / name).write_text("")
    source = b"import beside\nprint 1"
    assert mend(source, str(tmp_path / "module.py")).text.startswith("from . import beside")
    assert mend(source).text.startswith("import beside")
