"""Misuse of ``map``, ``filter`` and ``zip``, lists in Python 2, and in Python 3 iterators that are empty once they were read.

Most errors are silent: a model_fn that is called for training and again for evaluation finds no hidden layers any more. The
analysis follows iterators that a file makes, by a call or by a function of its own, and reads by name, through assignments. It
does not follow them through attributes and containers or to other files, but reports that they are put there.
"""

from __future__ import annotations

import ast
import enum
import itertools
from collections.abc import Iterator
from typing import Any

from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.scopes import Place, Scope, assignment_targets, by_likelihood
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_MAKERS = frozenset(f"{module}.{name}" for module in ("builtins", "six.moves") for name in ("map", "filter", "zip"))
_READERS = (
    "all any deque dict enumerate filter frozenset list map max min set sorted sum tuple zip Counter OrderedDict reduce "
    "fromiter izip imap ifilter chain from_iterable starmap"
)
_STEPPERS = frozenset({"iter", "islice", "next"})  # of code that expects an iterator
_READING_METHODS = (
    "apply_gradients difference executemany extend fromkeys from_records intersection isdisjoint issubset issuperset join union update "
    "writelines writerows"
)
_LIST_METHODS = frozenset({"append", "count", "copy", "extend", "index", "insert", "pop", "remove", "reverse", "sort"})
_LIBRARIES = ("tensorflow", "numpy", "pandas")


class _Use(enum.Enum):
    READ = "read once"
    RETURNED = "returned"
    DROPPED = "never read"
    NAMED = "assigned to a name"
    UNKNOWN = "out of sight"


_Context = _Use | str  # text: the problem, for an iterator that is used as a list, or kept where it may be read twice


def judge_one_shot(source: Source, verdict: Verdict) -> Iterator[SourceFinding]:
    """Yields a finding for each ``map``, ``filter`` or ``zip`` that is not read exactly once.

    Args:
        source: Parsed file.
        verdict: Verdict of the findings.
    """
    found = {(node.lineno, node.col_offset + 1, name): message for node, name, message in _Analysis(source).problems()}
    for (line, column, name), message in sorted(found.items()):
        text = f"{message} In Python 3 {name} gives an iterator: write list({name}(...)), or run with --py2."
        yield SourceFinding(line, column, name, Kind.PYTHON2, verdict, text)


Problem = tuple[ast.expr, str, str]


class _Analysis:
    def __init__(self, source: Source) -> None:
        self.names = source.names
        self.cells = source.cells
        self.makers: dict[int, str] = {}  # map, filter or zip, by the identity of the call
        for node, place in self.names.nodes(ast.Call):
            name = self.names.resolve(node.func, place.scope)
            if name in _MAKERS:
                self.makers[id(node)] = name.rpartition(".")[2]
        self.parents: dict[int, ast.AST] = {}
        if self.makers:
            self.parents = {id(child): node for node in ast.walk(source.tree) for child in ast.iter_child_nodes(node)}

    def problems(self) -> Iterator[Problem]:
        """Yields each problem once, also those of iterators that functions return."""
        done: set[int] = set()
        while len(done) < len(self.makers):
            for node, place in self.names.nodes(ast.Call):
                if id(node) in self.makers and id(node) not in done:
                    done.add(id(node))
                    yield from self._of_expression(node, place)

    def _of_expression(self, node: ast.Call, place: Place) -> Iterator[Problem]:
        name = self.makers[id(node)]
        context = self._context(node, place)
        if context is _Use.NAMED:
            yield from self._of_name(node, name, place)
        elif context is _Use.RETURNED:
            self._mark_callers(place, name)
        elif isinstance(context, str):
            yield node, name, context
        elif context is _Use.DROPPED and name == "map":
            yield node, name, "Nothing reads it, so the function is never called."

    def _mark_callers(self, place: Place, name: str) -> None:
        """Marks the calls of a function that returns an iterator as makers of one."""
        function = place.function
        if not isinstance(function, ast.FunctionDef):
            return
        for node, where in self.names.nodes(ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == function.name and id(node) not in self.makers:
                home = where.scope.find(function.name)
                if home is not None and home is self.names.scopes[function].parent:
                    self.makers[id(node)] = name

    def _of_name(self, node: ast.Call, name: str, place: Place) -> Iterator[Problem]:
        reads: list[ast.Name] = []
        for use, where in self._uses(node, place):
            context = self._context(use, where)
            if isinstance(context, str):
                yield use, name, context
            elif context is _Use.RETURNED and where.function is place.function:
                self._mark_callers(place, name)
            elif context is _Use.READ:
                reads.append(use)
                yield from self._of_read(use, where, place, name)
        for first, second in itertools.pairwise(reads):
            if not self._exclusive(first, second):
                yield second, name, f"Read again, empty since {self.cells.line(first.lineno)}."

    def _of_read(self, use: ast.Name, where: Place, place: Place, name: str) -> Iterator[Problem]:
        if where.function is not place.function:
            yield use, name, "Read in a function: empty from the function's second call on."
        elif any(loop not in place.loops for loop in where.loops):
            yield use, name, "Read in a loop: empty from the loop's second iteration on."

    def _uses(self, node: ast.Call, place: Place) -> Iterator[tuple[ast.Name, Place]]:
        """Yields the reads of the names that the call is assigned to, directly or as one arm of a condition."""
        assignment = next(one for one in self._above(node) if isinstance(one, (ast.Assign, ast.AnnAssign)))
        names = {target.id for target in assignment_targets(assignment) if isinstance(target, ast.Name)}
        for use, where in self.names.nodes(ast.Name):
            home = place.scope.find(use.id) if use.id in names and isinstance(use.ctx, ast.Load) else None
            if home is not None and where.scope.find(use.id) is home:
                inside = where.scope is home or _is_comprehension_of(where.scope, home)
                likely = by_likelihood(home.bindings[use.id], (use.lineno, use.col_offset) if inside else None)
                if likely[0].value is assignment.value:
                    yield use, where

    def _context(self, node: ast.expr, place: Place) -> _Context:
        """Returns what happens to the value of an expression."""
        parent = self.parents.get(id(node))
        while isinstance(parent, (ast.IfExp, ast.BoolOp)) and getattr(parent, "test", None) is not node:
            node, parent = parent, self.parents.get(id(parent))
        if isinstance(parent, ast.keyword):
            return self._of_argument(self.parents[id(parent)], parent, place)
        if isinstance(parent, ast.Call) and parent.func is not node:
            return self._of_argument(parent, node, place)
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            return _of_assignment(parent)
        for kinds, context in _CONTEXTS:
            if isinstance(parent, kinds):
                return context
        if isinstance(parent, ast.Attribute) and parent.attr in _LIST_METHODS:
            return f"It has no .{parent.attr}."
        return _tested(parent, node)

    def _of_argument(self, call: ast.AST, argument: ast.AST, place: Place) -> _Context:
        if not isinstance(call, ast.Call):
            return _Use.UNKNOWN  # class C(metaclass=...)
        name = self.names.resolve(call.func, place.scope) or ""
        last = call.func.attr if isinstance(call.func, ast.Attribute) else name.rpartition(".")[2]
        if last == "len":
            return "It has no len()."
        if last == "bool":
            return "It is true even when it is empty."
        if last in _STEPPERS:
            return _Use.UNKNOWN
        if last in _READERS.split() or (last in _READING_METHODS.split() and isinstance(call.func, ast.Attribute)):
            return _Use.READ
        if name.startswith("numpy."):
            return f"{last} makes one object of it, not an array of its elements."
        if name.startswith(_LIBRARIES) or isinstance(argument, ast.keyword) or last[:1].isupper() or last == "append":
            return f"Given to {last or 'a function'}: empty when it is read a second time."
        return _Use.UNKNOWN

    def _exclusive(self, first: ast.AST, second: ast.AST) -> bool:
        """Returns True if no single run of the code reads both."""
        above = list(self._above(second))
        path = list(self._above(first))
        common = next(node for node in path if node in above)
        below = path[: path.index(common)]
        if isinstance(common, (ast.If, ast.IfExp)) and below and above.index(common) > 0:
            return _arm(common, below[-1]) != _arm(common, above[above.index(common) - 1])
        return any(isinstance(node, ast.If) and _leaves(node, child) for child, node in itertools.pairwise(below))

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        current: ast.AST | None = node
        while current is not None:
            yield current
            current = self.parents.get(id(current))


_CONTEXTS: tuple[tuple[tuple[type[ast.AST], ...], _Context], ...] = (
    ((ast.For, ast.AsyncFor, ast.comprehension, ast.Starred, ast.YieldFrom), _Use.READ),
    ((ast.Return,), _Use.RETURNED),
    ((ast.Expr,), _Use.DROPPED),
    ((ast.Dict, ast.List, ast.Tuple, ast.Set), "Kept in a container: empty when it is read a second time."),
    ((ast.Subscript,), "It cannot be indexed."),
    ((ast.BinOp, ast.AugAssign), "It supports no operators."),
)


def _of_assignment(node: ast.Assign | ast.AnnAssign) -> _Context:
    targets = assignment_targets(node)
    if any(isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice) for target in targets):
        return _Use.READ
    if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets):
        return "Kept in an attribute or a container: empty when it is read a second time."
    return _Use.NAMED if all(isinstance(target, ast.Name) for target in targets) else _Use.READ


def _tested(parent: ast.AST | None, node: ast.AST) -> _Context:
    """Returns the context of ``if x``, ``not x`` and ``x == [...]``, which do not look at the elements; UNKNOWN for others."""
    is_test = isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)) and parent.test is node
    if is_test or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
        return "It is true even when it is empty."
    if isinstance(parent, ast.Compare):
        operators = {type(operator) for operator in parent.ops}
        if operators & {ast.In, ast.NotIn}:
            return _Use.READ
        if operators - {ast.Is, ast.IsNot}:
            return "It is equal only to itself."
    return _Use.UNKNOWN


def _is_comprehension_of(scope: Scope | None, home: Scope) -> bool:
    while scope is not None and isinstance(scope.node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        scope = scope.parent
    return scope is home


def _arm(node: ast.If | ast.IfExp, child: ast.AST) -> list[ast.AST]:
    """Returns the arm of a condition that holds a child, or its test."""
    arms: list[Any] = [node.test, node.body, node.orelse]
    return next(arm for arm in (one if isinstance(one, list) else [one] for one in arms) if child in arm)


def _leaves(node: ast.If, child: ast.AST) -> bool:
    """Returns True if the arm that holds a statement ends by leaving the block or loop."""
    return isinstance(_arm(node, child)[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
