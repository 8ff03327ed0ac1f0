"""Idioms of Python 2: names, modules and methods that only it has, and syntax that Python 3 does not parse."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.scopes import Place
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

NAMES = {
    "apply": "write f(*args)",
    "basestring": "is str in Python 3",
    "buffer": "is memoryview in Python 3",
    "cmp": "write (a > b) - (a < b)",
    "coerce": "has no replacement",
    "execfile": "write exec(open(path).read())",
    "file": "is open in Python 3",
    "intern": "is sys.intern in Python 3",
    "long": "is int in Python 3",
    "raw_input": "is input in Python 3",
    "reduce": "is functools.reduce in Python 3",
    "reload": "is importlib.reload in Python 3",
    "unichr": "is chr in Python 3",
    "unicode": "is str in Python 3",
    "xrange": "is range in Python 3",
}

MODULES = {
    "BaseHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SimpleHTTPServer": "http.server",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "Tkinter": "tkinter",
    "UserDict": "collections",
    "__builtin__": "builtins",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "copy_reg": "copyreg",
    "dummy_thread": "_thread",
    "htmlentitydefs": "html.entities",
    "httplib": "http.client",
    "md5": "hashlib",
    "sets": "set",
    "sha": "hashlib",
    "thread": "_thread",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
}

METHODS = {
    "has_key": "write key in dictionary",
    **{f"{old}{name}": f"is {name} in Python 3" for old in ("iter", "view") for name in ("items", "keys", "values")},
}
"""Of dictionaries."""

_LISTS = frozenset({"keys", "values", "items"})
_OF_LISTS = frozenset({"sort", "append", "extend", "index", "reverse", "insert", "remove"})
_MENDED_BY = "estimator-bridge run --py2 rewrites it in memory"

# Names of fissix's rewritings, as readers know them.
_SYNTAX = {
    "dict": "keys(), values() or items()",
    "except": "except X, e",
    "exec": "exec statement",
    "haskey": ".has_key()",
    **dict.fromkeys(("imports", "imports2", "urllib"), "renamed module"),
    **dict.fromkeys(("itertools", "itertoolsimports"), "name of itertools"),
    "metaclass": "__metaclass__",
    "methodattrs": "attribute of a method",
    "ne": "<>",
    "next": ".next()",
    "nonzero": "__nonzero__",
    "numliterals": "octal or long literal",
    "print": "print statement",
    "raise": "raise X, value",
    "repr": "backticks",
    "rawinput": "raw_input",
    "sysexc": "sys.exc_type",
    "tupleparams": "tuple as a parameter",
}


def judge_idioms(source: Source, verdict: Verdict) -> Iterator[SourceFinding]:
    """Yields a finding for each idiom of Python 2 that its name or its syntax shows.

    Args:
        source: Parsed file.
        verdict: Verdict of the findings.
    """
    if source.error is not None:
        for idiom in source.idioms:
            name = _SYNTAX.get(idiom.name, idiom.name)
            yield SourceFinding(idiom.line, 1, name, Kind.PYTHON2, verdict, f"Python 2; {_MENDED_BY}")
        if not source.idioms:
            line, column = source.error.lineno or 1, source.error.offset or 1
            yield SourceFinding(line, column, "mixed tabs", Kind.PYTHON2, verdict, f"{source.error.msg}; {_MENDED_BY}")
        return  # the rest of the tree has been rewritten
    for line, column, symbol, why in sorted(
        {*_names(source), *_modules(source), *_methods(source), *_list_methods(source), *_prints(source)}
    ):
        yield SourceFinding(line, column, symbol, Kind.PYTHON2, verdict, f"Python 2: {why}; {_MENDED_BY}")


Occurrence = tuple[int, int, str, str]


def _names(source: Source) -> Iterator[Occurrence]:
    if source.names.stars:
        return
    for node, place in source.names.nodes(ast.Name):
        if node.id in NAMES and not place.guarded and place.scope.find(node.id) is None:
            yield node.lineno, node.col_offset + 1, node.id, NAMES[node.id]


def _modules(source: Source) -> Iterator[Occurrence]:
    for dotted, statement, place in source.names.imports:
        top = dotted.partition(".")[0]
        if top in MODULES and not place.guarded:
            yield statement.lineno, statement.col_offset + 1, f"import {top}", f"is {MODULES[top]} in Python 3"


def _methods(source: Source) -> Iterator[Occurrence]:
    for call, place in source.names.nodes(ast.Call):
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in METHODS or place.guarded:
            continue
        if len(call.args) == (function.attr == "has_key") and source.names.resolve(function.value, place.scope) != "six":
            yield _end(function), function.col_offset + 1, f".{function.attr}()", METHODS[function.attr]


def _list_methods(source: Source) -> Iterator[Occurrence]:
    """Yields ``d.keys().sort()`` and ``d.keys()[0]``, also through a name."""
    lists: set[tuple[int, str]] = set()
    for statement, place in source.names.nodes(ast.Assign):
        if _is_view(statement.value) and isinstance(statement.targets[0], ast.Name):
            lists.add((id(place.scope), statement.targets[0].id))
    for chain, place in source.names.nodes(ast.Attribute):
        if chain.attr in _OF_LISTS and (_is_view(chain.value) or _is_one_of(chain.value, place, lists)):
            yield _end(chain), chain.col_offset + 1, f".{chain.attr}", "keys(), values() and items() are not lists in Python 3"
    for item, _ in source.names.nodes(ast.Subscript):
        if _is_view(item.value):
            yield item.lineno, item.col_offset + 1, "[...]", "keys(), values() and items() cannot be indexed in Python 3"


def _prints(source: Source) -> Iterator[Occurrence]:
    """Yields ``print >>file, x`` and a bare ``print``, which Python 3 parses as expressions."""
    for statement, _ in source.names.nodes(ast.Expr):
        if isinstance(statement.value, ast.Name) and statement.value.id == "print":
            yield statement.lineno, statement.col_offset + 1, "print statement", "prints nothing in Python 3"
    for node, _ in source.names.nodes(ast.BinOp):
        if isinstance(node.op, ast.RShift) and getattr(node.left, "id", None) == "print":
            yield node.lineno, node.col_offset + 1, "print statement", "shifts the function print in Python 3"


def _is_one_of(node: ast.expr, place: Place, lists: set[tuple[int, str]]) -> bool:
    if not isinstance(node, ast.Name) or (id(place.scope), node.id) not in lists:
        return False
    return len(place.scope.bindings.get(node.id, ())) == 1


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LISTS and not node.args


def _end(node: ast.expr) -> int:
    return node.end_lineno or node.lineno
