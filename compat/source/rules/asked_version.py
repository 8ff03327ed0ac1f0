"""The version that a script should read in ``tf.__version__``: TensorFlow 1's, or that of the TensorFlow that runs it."""

from __future__ import annotations

import ast
import copy
import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from estimator_bridge.compat.source.names import Names
from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.scopes import Scope
from estimator_bridge.compat.source.surface import canonical

TENSORFLOW_1 = "1.15.5"
"""The last version of TensorFlow 1."""

_VERSION_NAMES = frozenset({"tensorflow.__version__", "tensorflow.VERSION", "tensorflow.version.VERSION"})
_PARSERS = frozenset({"LooseVersion", "StrictVersion", "Version", "parse", "parse_version"})
_FUNCTIONS = {
    "int": int,
    "float": float,
    "str": str,
    "len": len,
    "list": list,
    "tuple": tuple,
    "map": map,
    "any": any,
    "all": all,
}
_MEMBERS = frozenset(["major", "minor", "release", "replace", "rsplit", "split", "startswith", "strip", "version"])
_TAKES_COMPAT_V1 = re.compile(r"\bcompat\.v1\b|\bcompat import v1\b")
_EXITS = re.compile(r"(sys\.exit|os\._exit|exit|quit)\(")
_DEPTH = 4
_Test = ast.If | ast.IfExp | ast.Assert
_ALLOWED = (
    ast.Expression, ast.expr_context, ast.cmpop, ast.boolop, ast.Not, ast.USub, ast.Constant, ast.Name, ast.Compare, ast.BoolOp,
    ast.UnaryOp, ast.Call, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.ListComp, ast.GeneratorExp, ast.comprehension,
)  # fmt: skip


class VersionChoice(NamedTuple):
    """The version that a script reads, and the place that decided it.

    Attributes:
        version: Version of TensorFlow.
        reason: Reason, to follow a colon.
        where: File and line.
    """

    version: str
    reason: str
    where: str


class _VersionTest(NamedTuple):
    """A place where a script does one thing on TensorFlow 1 and another on TensorFlow 2."""

    where: str
    on_tf1: list[ast.stmt]
    on_tf2: list[ast.stmt]


def choose_version(sources: Iterable[Source], installed: str) -> VersionChoice | None:
    """Decides what ``tf.__version__`` should be, by what the script does with it; runs nothing.

    Code that refuses a version gets the other one. Code that takes ``tensorflow.compat.v1`` on TensorFlow 2 knows both, and gets the
    installed version, whose internals it may ask for. All other code that asks takes the same branch as on TensorFlow 1.

    Args:
        sources: Script and its own modules.
        installed: Version of the installed TensorFlow.

    Returns:
        None if nothing depends on the version.
    """
    tests = [test for source in sources for test in _version_tests(source, installed)]
    for branch, version, other in (("on_tf2", TENSORFLOW_1, "2"), ("on_tf1", installed, "1")):
        for test in tests:
            if any(_refuses(statement) for statement in getattr(test, branch)):
                return VersionChoice(version, f"the script refuses TensorFlow {other}", test.where)
    for test in tests:
        if any(_TAKES_COMPAT_V1.search(ast.unparse(statement)) for statement in test.on_tf2):
            return VersionChoice(installed, "the script itself takes tensorflow.compat.v1 on TensorFlow 2", test.where)
    return VersionChoice(TENSORFLOW_1, "the script does something else on TensorFlow 2", tests[0].where) if tests else None


def _version_tests(source: Source, installed: str) -> Iterator[_VersionTest]:
    if "__version__" not in source.text and "VERSION" not in source.text:
        return
    kinds: tuple[type[_Test], ...] = (ast.If, ast.IfExp, ast.Assert)
    for kind in kinds:
        for node, place in source.names.nodes(kind):
            on_tf1, on_tf2 = (_evaluate(node.test, place.scope, source.names, one) for one in (TENSORFLOW_1, installed))
            if on_tf1 is None or on_tf2 is None or on_tf1 == on_tf2:
                continue
            yes, no = _branches(node)
            yield _VersionTest(source.place(node.lineno), yes if on_tf1 else no, yes if on_tf2 else no)


def _branches(node: _Test) -> tuple[list[ast.stmt], list[ast.stmt]]:
    if isinstance(node, ast.If):
        return node.body, node.orelse
    if isinstance(node, ast.Assert):
        return [], [ast.Raise()]
    return [ast.Expr(node.body)], [ast.Expr(node.orelse)]


def _refuses(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Raise) or bool(_EXITS.match(ast.unparse(statement)))


def _evaluate(test: ast.expr, scope: Scope, names: Names, version: str) -> bool | None:
    """Returns the truth of a test for one version; None if it does not depend on the version alone."""
    substituted = _Substitution(scope, names)
    expression = ast.fix_missing_locations(ast.Expression(substituted.visit(copy.deepcopy(test))))
    if not substituted.asks or not substituted.is_plain or not all(isinstance(node, _ALLOWED) for node in ast.walk(expression)):
        return None
    values = {"__builtins__": {}, "__tf_version__": version, "__parsed__": _Parsed, **_FUNCTIONS}
    try:
        return bool(eval(compile(expression, "version test", "eval"), values))
    except Exception:  # noqa: BLE001 -- a test that fails decides nothing
        return None


class _Substitution(ast.NodeTransformer):
    """Puts the version, parsers of versions, and the values of variables in the place of their names."""

    def __init__(self, scope: Scope, names: Names, depth: int = _DEPTH) -> None:
        self.asks = False
        self.is_plain = True
        self._scope, self._names, self._depth = scope, names, depth
        self._bound: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        known = self._known(node)
        if known is not None:
            return known
        self.is_plain &= node.attr in _MEMBERS
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self._bound |= {one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)}
        return self.generic_visit(node)

    def visit_ListComp(self, node: Any) -> Any:
        node.generators = [self.visit(one) for one in node.generators]
        node.elt = self.visit(node.elt)
        return node

    visit_GeneratorExp = visit_ListComp  # noqa: N815 -- named by ast

    def visit_Name(self, node: ast.Name) -> ast.AST:
        known = self._known(node)
        if known is not None:
            return known
        if node.id in self._bound:
            return node
        home = self._scope.find(node.id)
        if home is None:
            self.is_plain &= node.id in _FUNCTIONS
            return node
        values = [one.value for one in home.bindings.get(node.id, ())]
        if len(values) != 1 or values[0] is None or not self._depth:
            self.is_plain = False
            return node
        inner = _Substitution(home, self._names, self._depth - 1)
        found: ast.AST = inner.visit(copy.deepcopy(values[0]))
        self.asks |= inner.asks
        self.is_plain &= inner.is_plain
        return found

    def _known(self, node: ast.expr) -> ast.Name | None:
        dotted = canonical(self._names.resolve(node, self._scope) or "")
        if dotted in _VERSION_NAMES:
            self.asks = True
            return ast.Name("__tf_version__", ast.Load())
        if dotted.rpartition(".")[2] in _PARSERS and "version" in dotted.lower():
            return ast.Name("__parsed__", ast.Load())
        return None


@functools.total_ordering
class _Parsed:
    """A version as distutils and packaging compare them: by its first three numbers."""

    def __init__(self, text: object) -> None:
        numbers = [int(number) for number in re.findall(r"\d+", str(text))]
        self.release = tuple([*numbers, 0, 0, 0][:3])
        self.version = list(self.release)
        self.major, self.minor = self.release[:2]

    def __str__(self) -> str:
        return ".".join(map(str, self.release))

    def __eq__(self, other: object) -> bool:
        return self.release == _Parsed(other).release

    def __lt__(self, other: object) -> bool:
        return self.release < _Parsed(other).release

    __hash__ = None  # type: ignore[assignment]
