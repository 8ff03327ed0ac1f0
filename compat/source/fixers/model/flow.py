"""Finds the names that statements read and write, and the statements of a model function in each of its modes."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.script import Script, children, code, known_of_nodes, nodes, simple_name

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_MODULES = ("tf", "tensorflow", "logging")
"""Names whose attributes are functions: a call changes no value."""
_UPDATES = frozenset({"minimize", "compute_gradients", "apply_gradients", "optimize_loss"})
"""Methods and functions that update variables."""
_SPECS = ("tensorflow.estimator.EstimatorSpec",)
_COMPUTING = re.compile(
    r"tensorflow\.((math|random|nn|image)\.)?(?!assign|bidirectional|count_up|dynamic|get_|global|gradients|group|local|make_|model_|moving|no_op|placeholder|raw|scatter|static|trainable|variable)[a-z]\w*"
)
"""Functions that only make a tensor of others."""


class Mode(enum.Enum):
    """A mode of a model function, and its name in ModeKeys."""

    TRAIN = "TRAIN"
    EVAL = "EVAL"
    PREDICT = "PREDICT"


MODES = {"TRAIN": "train", "EVAL": "eval", "PREDICT": "infer"}
"""Value of each mode, by its name."""


@dataclasses.dataclass(frozen=True)
class Branch:
    """The statements of a model function in one mode.

    Attributes:
        statements: Statements in their order, without the tests of the mode.
        spec: Call of EstimatorSpec that it returns.
    """

    statements: tuple[Statement, ...]
    spec: cst.Call


def mode_name(name: str) -> str:
    """Returns the mode that a name means, TRAIN, EVAL or PREDICT; empty for all else.

    Example:
        >>> mode_name("tensorflow.contrib.learn.ModeKeys.INFER"), mode_name("tensorflow.estimator.ModeKeys")
        ('PREDICT', '')
    """
    owner, _, mode = name.rpartition(".ModeKeys.")
    mode = {"INFER": "PREDICT"}.get(mode, mode)
    return mode if owner.startswith("tensorflow.") and mode in Mode.__members__ else ""


@known_of_nodes
def reads_and_writes(statement: cst.CSTNode) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the names that a statement reads, and those that it binds or changes.

    Example:
        >>> read, written = reads_and_writes(cst.parse_statement("net, n = f(x.y, k=2), m[0]"))
        >>> sorted(read), sorted(written)
        (['f', 'm', 'x'], ['n', 'net'])
        >>> reads_and_writes(cst.parse_statement("def g(a): b = a + c"))
        (frozenset({'c'}), frozenset({'g'}))
        >>> sorted(reads_and_writes(cst.parse_statement("for a in b: c(a)"))[0])
        ['b', 'c']
    """
    if isinstance(
        statement, cst.If | cst.Else | cst.IndentedBlock | cst.With | cst.WithItem
    ):  # of its parts: in a block that has changed, most have not
        found = [reads_and_writes(one) for one in children(statement)]
        return frozenset().union(*(read for read, _ in found)), frozenset().union(*(written for _, written in found))
    names = _Names()
    if isinstance(statement, cst.For):
        names._bind(statement.target)
        read, written = reads_and_writes(statement.body)
        around = [reads_and_writes(one) for one in (statement.iter, statement.orelse) if one is not None]
        own = read - names.bound, written | names.written
        return own[0].union(names.read, *(one for one, _ in around)), own[1].union(*(one for _, one in around))
    statement.visit(names)
    return frozenset(names.read - names.own), frozenset(names.written)


CHANGING = frozenset(
    ("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault", "sort", "update")
)  # fmt: skip
"""Methods that change a list, a dict or a set."""
_CHAINS = (cst.Name, cst.Attribute, cst.Subscript)


class _Names(cst.CSTVisitor):
    """Collects names; of functions, lambdas and comprehensions only what they read from around them."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.written: set[str] = set()  # what objects are changed, too
        self.bound: set[str] = set()
        self.own: set[str] = set()  # arguments of functions, variables of comprehensions

    def visit_Name(self, node: cst.Name) -> None:
        self.read.add(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        self._bind(node.target)
        return False

    def visit_AnnAssign(self, node: cst.AnnAssign) -> bool:
        self._bind(node.target)
        if node.value is not None:
            node.value.visit(self)
        return False

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target)

    def visit_For(self, node: cst.For) -> bool:
        targets, inner = _Names(), _Names()
        targets._bind(node.target)
        node.body.visit(inner)
        self.read |= inner.read - inner.own - targets.bound
        self.written |= inner.written
        self.bound |= inner.bound
        self._bind(node.target)
        for part in (node.iter, node.orelse):
            if part is not None:
                part.visit(self)
        return False

    def visit_AsName(self, node: cst.AsName) -> bool:
        self._bind(node.name)
        return False

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._bind(node.target)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        inner = _Names()
        for part in (node.params, node.body, *node.decorators):
            part.visit(inner)
        self.read |= inner.read - inner.own - inner.bound  # what it assigns is its own
        self._bind(node.name)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        inner = _Names()
        node.body.visit(inner)
        self.read |= (
            inner.read - inner.own - {one.name.value for one in nodes(node.params, cst.Param) if isinstance(one, cst.Param)}
        )
        for one in nodes(node.params, cst.Param):
            if isinstance(one, cst.Param) and one.default is not None:
                one.default.visit(self)
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._bind(node.name)

    def visit_Param(self, node: cst.Param) -> bool:
        self.own.add(node.name.value)
        if node.default is not None:
            node.default.visit(self)
        return False

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self.own.update(simple_name(name) for name in nodes(node.target, cst.Name))

    def visit_Expr(self, node: cst.Expr) -> None:
        """Takes the object whose method is called for changed: ``layers.append(x)``."""
        if isinstance(node.value, cst.Call) and isinstance(node.value.func, cst.Attribute):
            self.written.update({simple_name(node.value.func.value)} - {"", *_MODULES})

    def _bind(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self.bound.add(target.value)
            self.written.add(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
        elif isinstance(target, cst.Attribute | cst.Subscript):  # a change of an object
            target.visit(self)
            root: cst.CSTNode = target
            while isinstance(root, cst.Attribute | cst.Subscript):
                root = root.value
            if isinstance(root, cst.Name):
                self.written.add(root.value)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value)


def needed_for(names: Iterable[str], statements: Sequence[Statement]) -> list[Statement]:
    """Returns the statements that names depend on, in their order.

    Args:
        names: Names after the last statement.
        statements: Statements without jumps between them.
    """
    later = frozenset[str]()
    while True:
        found = _needed(names, statements, later)
        closures = [one for each in found for one in nodes(each, cst.Lambda, cst.FunctionDef)]
        read = frozenset[str]().union(*(reads_and_writes(one)[0] for one in closures))
        if read <= later:
            return found
        later |= read  # a function reads them where it is called, so what they get behind it counts, too


def _needed(names: Iterable[str], statements: Sequence[Statement], later: Set[str]) -> list[Statement]:
    wanted, found = set(names) | later, []
    for statement in reversed(statements):
        read, written = reads_and_writes(statement)
        if written & wanted:
            found.append(statement)
            if assigned_value(statement) is not None and not written & read:  # what the names were before, nothing needs
                wanted -= written - later
            wanted |= read
    return found[::-1]


def changed_in_place(statements: Sequence[cst.CSTNode], functions: Sequence[cst.FunctionDef] = ()) -> frozenset[str]:
    r"""Returns the names whose objects a method changes, or a function of the script.

    Args:
        statements: Statements.
        functions: Functions of the script.

    Example:
        >>> lines = cst.parse_module("def widen(n): n[0] = 9\na.b.append(1)\nwiden(c)\nd.get(e)").body
        >>> sorted(changed_in_place(lines, [lines[0]]))
        ['a', 'c']
    """
    named = {one.name.value: one for one in functions}
    found = set[str]()
    for call in (one for each in statements if not isinstance(each, cst.FunctionDef) for one in nodes(each, cst.Call)):
        assert isinstance(call, cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in CHANGING:
            found.add(root_of(call.func.value))
        function = named.get(simple_name(call.func))
        if function is None:
            continue
        changed = changed_in_place(function.body.body) | reads_and_writes(function.body)[1]
        names = [one.name.value for one in function.params.params]
        for place, argument in enumerate(call.args):
            parameter = argument.keyword.value if argument.keyword else names[place] if place < len(names) else ""
            found |= {root_of(argument.value)} if parameter in changed else set()
    return frozenset(found - {""})


def changed_by_another_name(statements: Sequence[cst.CSTNode]) -> Iterator[tuple[cst.CSTNode, str]]:
    r"""Yields the statements that make a list longer which has a second name, and that name.

    Args:
        statements: Statements.

    Example:
        >>> lines = cst.parse_module("more = p.sizes\nmore += [1]\nother = sizes\nother.append(2)\nuse(sizes)").body
        >>> [name for _, name in changed_by_another_name(lines)]
        ['p.sizes', 'sizes']
    """
    lines = [
        cst.ensure_type(one, cst.SimpleStatementLine) for each in statements for one in nodes(each, cst.SimpleStatementLine)
    ]
    order = {part: place for place, part in enumerate(part for one in statements for part in nodes(one, *_CHAINS))}
    looped = {part for one in statements for loop in nodes(one, cst.For, cst.While) for part in nodes(loop, *_CHAINS)}
    for place, line in enumerate(lines):
        name, value = simple_name(assigned_target(line)), assigned_value(line)
        if not name or not isinstance(value, cst.Name | cst.Attribute | cst.Subscript):
            continue
        pair = {name: code(value), code(value): name}
        for change in lines[place + 1 :]:
            if simple_name(assigned_target(change)) == name:
                break
            changed = _changed_object(change)
            other = pair.get(code(changed)) if changed is not None else None
            if changed is None or other is None:
                continue
            known = {part for one in (line, change) for part in nodes(one, *_CHAINS)}
            read = [one for one in order if one not in known and code(one) == other and not _is_target(one, lines)]
            behind = any(order[one] > order[changed] or {one, changed} <= looped for one in read)
            if not isinstance(value, cst.Name) or behind:  # what an object has is there in the next call, too
                yield change, other


def _is_target(node: cst.CSTNode, lines: Sequence[cst.SimpleStatementLine]) -> bool:
    return any(assigned_target(one) is node for one in lines)


def _changed_object(line: cst.SimpleStatementLine) -> cst.BaseExpression | None:
    """Returns the list or dict that a statement changes; None for others."""
    only = line.body[0]
    called = only.value.func if isinstance(only, cst.Expr) and isinstance(only.value, cst.Call) else None
    if isinstance(called, cst.Attribute) and called.attr.value in ("append", "extend", "insert"):
        return called.value
    if isinstance(only, cst.AugAssign) and isinstance(only.value, cst.List | cst.ListComp | cst.Tuple):
        return only.target
    target = only.target if isinstance(only, cst.Del) else assigned_target(line)
    return target.value if isinstance(target, cst.Subscript) else None


def root_of(node: cst.BaseExpression) -> str:
    """Returns the name at the root of a chain of attributes and items."""
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return simple_name(node)


def unwrapped(statements: Sequence[Statement]) -> list[Statement]:
    """Returns the statements with those inside of ``with`` blocks in place of the blocks."""
    flat: list[Statement] = []
    for statement in statements:
        if isinstance(statement, cst.With) and isinstance(statement.body, cst.IndentedBlock):
            inner = [one for one in statement.body.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
            flat += unwrapped(inner)
        else:
            flat.append(statement)
    return flat


def tainted_by(names: Iterable[str], statements: Sequence[Statement]) -> tuple[list[Statement], set[str]]:
    """Returns the statements that depend on names, and the names that then depend on them."""
    tainted, found = set(names), []
    for statement in statements:
        read, written = reads_and_writes(statement)
        if read & tainted:
            found.append(statement)
            tainted |= written
    return found, tainted


class ModeTests:
    """The value of conditions on the mode.

    Args:
        script: Script around the model function.
        mode_name: Name of the argument ``mode``.
        body: Statements of the function, whose assignments such as ``training = mode == TRAIN`` are known.
        labels: Name of the argument for the labels, which are None in a prediction; empty if there is none.

    Attributes:
        asks_labels: True if a condition asks whether there are labels, which is taken to be so in training and evaluation.
        bound: Names that the function gives a value.
        of_labels: Names of the labels.
        flags: Conditions on the mode that have a name.
    """

    def __init__(self, script: Script, mode_name: str, body: Sequence[Statement], labels: str = "") -> None:
        self._script = script
        self._mode_name = mode_name
        self.of_labels = _same_as(labels, body) if labels else set()
        self.asks_labels = False
        self._constants = [one for one in (*script.module.body, *body) if isinstance(one, cst.SimpleStatementLine)]
        self.bound = {name for statement in body for name in reads_and_writes(statement)[1]}
        self.flags: dict[str, cst.BaseExpression] = {}
        for statement in body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    if (
                        isinstance(small, cst.Assign)
                        and len(small.targets) == 1
                        and self.value(small.value, Mode.TRAIN) is not None
                    ):
                        self.flags[simple_name(small.targets[0].target)] = small.value

    def value(self, node: cst.BaseExpression, mode: Mode) -> bool | None:
        """Returns the value of a condition in a mode; None if it does not depend on the mode alone."""
        if isinstance(node, cst.Name):
            return self.value(self.flags[node.value], mode) if node.value in self.flags else None
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            inner = self.value(node.expression, mode)
            return None if inner is None else not inner
        if isinstance(node, cst.BooleanOperation):
            return self._combined(node, mode)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            return self._compared(node, mode)
        return None

    def _combined(self, node: cst.BooleanOperation, mode: Mode) -> bool | None:
        values = [self.value(node.left, mode), self.value(node.right, mode)]
        decides = isinstance(node.operator, cst.Or)
        if decides in values:
            return decides
        return None if None in values else not decides

    def _compared(self, node: cst.Comparison, mode: Mode) -> bool | None:
        (target,) = node.comparisons
        sides = node.left, target.comparator
        is_not = isinstance(target.operator, cst.IsNot | cst.NotEqual)
        if simple_name(node.left) in self.of_labels and code(target.comparator) == "None":
            self.asks_labels = True
            return (mode is Mode.PREDICT) is not is_not
        if simple_name(sides[0]) != self._mode_name:
            sides = sides[1], sides[0]
        if simple_name(sides[0]) != self._mode_name:
            return None
        listed = (
            [element.value for element in sides[1].elements]
            if isinstance(sides[1], cst.Tuple | cst.List | cst.Set)
            else [sides[1]]
        )
        modes = [self._mode(one) for one in listed]
        if None in modes:
            return None
        operator = target.operator
        if isinstance(operator, cst.Equal | cst.Is | cst.In):
            return mode in modes
        return mode not in modes if isinstance(operator, cst.NotEqual | cst.IsNot | cst.NotIn) else None

    def _mode(self, node: cst.BaseExpression) -> Mode | None:
        if isinstance(node, cst.Name):
            node = assigned(node.value, self._constants) or node
        mode = mode_name(self._script.name(node))
        if mode:
            return Mode[mode]
        texts = {"'train'": Mode.TRAIN, "'eval'": Mode.EVAL, "'infer'": Mode.PREDICT}
        return texts.get(code(node).replace('"', "'"))


def _same_as(name: str, body: Sequence[Statement]) -> set[str]:
    """Returns an argument of a function and the names that its statements give to that alone; nothing if they give it another value."""
    bindings = Counter(bound for statement in body for bound in reads_and_writes(statement)[1])
    lines = [one for one in body if simple_name(assigned_value(one)) == name]
    others = {simple_name(assigned_target(one)) for one in lines} - {""}
    is_changed = any(name in reads_and_writes(one)[1] for one in body)
    return set() if is_changed else {name, *(one for one in others if bindings[one] == 1)}


def as_test_of_mode(statement: Statement, tests: ModeTests) -> Statement:
    """Returns ``x = a if mode == TRAIN else b`` as a statement with two branches, which have the same expressions; others as they are."""
    only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    value = only.value if isinstance(only, cst.Assign) else None
    if not isinstance(value, cst.IfExp) or tests.value(value.test, Mode.TRAIN) is None or not isinstance(only, cst.Assign):
        return statement

    def block(chosen: cst.BaseExpression) -> cst.IndentedBlock:
        assert isinstance(only, cst.Assign)
        return cst.IndentedBlock([cst.SimpleStatementLine([only.with_changes(value=chosen)])])

    return cst.If(value.test, block(value.body), cst.Else(block(value.orelse)), leading_lines=statement.leading_lines)


class _NoSpecError(Exception):
    """The model function raises in a mode, or returns None."""


def branch(
    script: Script, tests: ModeTests, body: Sequence[Statement], mode: Mode, keeps_choices: bool = False
) -> Branch | None:
    """Returns what a model function does in a mode; None if it returns nothing in that mode.

    Args:
        script: Script around the function.
        tests: Tests of the mode.
        body: Statements of the function.
        mode: The mode.
        keeps_choices: Tests of training that only choose between two values stay.

    Raises:
        UnconvertibleError: It returns something else than an EstimatorSpec, or from inside other statements.
    """
    statements: list[Statement] = []
    every = [one for each in body for one in nodes(each, cst.If)] if keeps_choices else []
    kept = {one for one in every if isinstance(one, cst.If) and _only_chooses(script, tests, one)}
    try:
        spec = _walk(script, tests, body, mode, kept, statements)
    except _NoSpecError:
        return None
    return Branch(tuple(one for one in statements if assigned_value(one) is not spec), spec) if spec is not None else None


def _walk(
    script: Script, tests: ModeTests, body: Iterable[Statement], mode: Mode, kept: Set[cst.If], found: list[Statement]
) -> cst.Call | None:
    """Collects the statements of a mode up to its return, with some tests as they are; returns the EstimatorSpec, or None at the end of the body."""
    for statement in body:
        chosen = tests.value(statement.test, mode) if isinstance(statement, cst.If) else None
        if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Raise):
            raise _NoSpecError
        if returned_value(statement) is not None:
            return _spec(script, tests, statement, found)
        stays = isinstance(statement, cst.If) and (statement in kept or _only_changes(tests, statement))
        if isinstance(statement, cst.If) and chosen is not None and not stays:
            spec = _walk(script, tests, _statements(statement.body if chosen else statement.orelse), mode, kept, found)
        elif isinstance(statement, cst.With) and _returns(statement):
            spec = _walk(script, tests, _statements(statement.body), mode, kept, found)
        elif _returns(statement):
            message = "it returns from inside other statements than tests of the mode; return at the end"
            raise UnconvertibleError(statement, "the model function", message)
        else:
            found.append(statement)
            continue
        if spec is not None:
            return spec
    return None


def scopes_with_returns(script: Script, body: Iterable[Statement]) -> Iterator[cst.With]:
    """Yields the scopes of variables in which a model function returns, the outermost first."""
    for one in body:
        if isinstance(one, cst.With) and _returns(one):
            if any(script.called(item.item) == "tensorflow.variable_scope" for item in one.items):
                yield one
            yield from scopes_with_returns(script, _statements(one.body))


def _only_changes(tests: ModeTests, statement: cst.If) -> bool:
    """Returns True for a test of training that only gives names other values, made from what they were, such as a dropout."""
    read, written = reads_and_writes(statement)
    of_training = tests.value(statement.test, Mode.EVAL) == tests.value(statement.test, Mode.PREDICT)
    methods = {one.attr.value for one in nodes(statement, cst.Attribute) if isinstance(one, cst.Attribute)}
    return of_training and bool(written) and written <= read and not methods & _UPDATES and not _returns(statement)


def chooses(statement: cst.CSTNode) -> bool:
    r"""Returns True for a test that only gives names one value or another, of which one is computed, such as a draw or its mean.

    Example:
        >>> chooses(cst.parse_statement("if a:\n    b = c()\nelse:\n    b = 0")), chooses(cst.parse_statement("if a:\n    b = c()"))
        (True, False)
    """
    sides = (_statements(statement.body), _statements(statement.orelse)) if isinstance(statement, cst.If) else ([], [])
    names = [{name for one in side for name in reads_and_writes(one)[1]} for side in sides]
    is_plain = all(assigned_value(one) is not None for side in sides for one in side)
    return is_plain and names[0] == names[1] != set() and any(True for _ in nodes(statement, cst.Call))


def _only_chooses(script: Script, tests: ModeTests, statement: cst.If) -> bool:
    """Returns True for a test of training that chooses between two values, and makes no variables."""
    of_training = tests.value(statement.test, Mode.EVAL) == tests.value(statement.test, Mode.PREDICT)
    return of_training and chooses(statement) and all(_computes(script, one) for one in nodes(statement, cst.Call))


def _computes(script: Script, call: cst.CSTNode) -> bool:
    """Returns True for a call that makes a tensor of others: by a function of TensorFlow, or a draw from a distribution."""
    name = script.called(call)
    of_distribution = (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value in ("mean", "mode", "sample")
    )
    return (not name and of_distribution) or _COMPUTING.fullmatch(name) is not None


def _returns(statement: Statement) -> bool:
    """Returns True if a statement holds a return of the function around it, not of one inside it."""
    inner = {one for function in nodes(statement, cst.FunctionDef) for one in nodes(function, cst.Return)}
    return any(one not in inner for one in nodes(statement, cst.Return))


def _spec(script: Script, tests: ModeTests, statement: Statement, before: Sequence[Statement]) -> cst.Call | None:
    """Returns the EstimatorSpec that a statement returns; None if it returns a name that only other modes give a value."""
    returned = returned_value(statement)
    if isinstance(returned, cst.Name):
        if returned.value in tests.bound and not any(returned.value in reads_and_writes(one)[1] for one in before):
            return None
        value = returned if returned.value == "None" else assigned(returned.value, before)
        if _changes_later(returned.value, before):
            value = None
        elif isinstance(value, cst.Name) and value.value == "None":
            raise _NoSpecError
        returned = value
    if isinstance(returned, cst.Call) and script.called(returned) in _SPECS:
        return returned
    message = "it returns something else than an EstimatorSpec; write it as one call"
    raise UnconvertibleError(statement, "the model function", message)


def _changes_later(name: str, statements: Sequence[Statement]) -> bool:
    """Returns True if a statement behind the last plain assignment of a name, such as a block, gives it another value."""
    value = assigned(name, statements)
    if value is None:
        return False
    place = next(place for place, one in enumerate(statements) if value in {*nodes(one, type(value))})
    return any(name in reads_and_writes(one)[1] for one in statements[place + 1 :])


def _statements(node: cst.CSTNode | None) -> list[Statement]:
    """Returns the statements of a block, of an else or of an elif."""
    if node is None:
        return []
    if isinstance(node, cst.If):
        return [node]
    block = node.body if isinstance(node, cst.Else) else node
    if isinstance(block, cst.IndentedBlock):
        return [one for one in block.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
    if isinstance(block, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(body=block.body)]
    return []


def returned_value(statement: cst.CSTNode) -> cst.BaseExpression | None:
    """Returns what a statement returns; None if it returns nothing."""
    if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Return):
        return statement.body[-1].value or cst.Name("None")
    return None


def assigned(name: str, statements: Sequence[Statement]) -> cst.BaseExpression | None:
    """Returns the value that a name was last given by a plain assignment; None if something else may have changed it since."""
    for statement in reversed(statements):
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                targets = [simple_name(one.target) for one in small.targets] if isinstance(small, cst.Assign) else []
                if isinstance(small, cst.Assign) and name in targets:
                    if simple_name(small.value) != name:
                        return small.value
                    break
            else:
                if name in rebound(statement):
                    return None
        elif not isinstance(statement, cst.FunctionDef) and name in rebound(statement):
            return None
    return None


@known_of_nodes
def rebound(statement: cst.CSTNode) -> frozenset[str]:
    """Returns the names that a statement gives values, perhaps below a test; not those of objects that it only changes.

    Example:
        >>> sorted(rebound(cst.parse_statement("a, (b, c.d), e[0] = f")))
        ['a', 'b']
    """
    kinds = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr)
    pending: list[cst.CSTNode] = [one.target for one in nodes(statement, *kinds) if isinstance(one, kinds)]
    found = set[str]()
    while pending:
        target = pending.pop()
        if isinstance(target, cst.Tuple | cst.List):
            pending += [one.value for one in target.elements]
        found.add(simple_name(target))
    return frozenset(found - {""})


def bound_in_any_case(statements: Sequence[cst.CSTNode]) -> frozenset[str]:
    r"""Returns the names that statements bind whatever their tests find; loops are taken to have a turn.

    Example:
        >>> text = "a = 1\nif a:\n    b = c = 2\nelse:\n    b = 3\nif a:\n    d = 4\nwith e:\n    f = 5"
        >>> sorted(bound_in_any_case(cst.parse_module(text).body))
        ['a', 'b', 'f']
    """
    found = frozenset[str]()
    for one in statements:
        if isinstance(one, cst.If):
            rest = one.orelse
            others = bound_in_any_case([rest] if isinstance(rest, cst.If) else rest.body.body if rest is not None else ())
            found |= bound_in_any_case(one.body.body) & others
        elif isinstance(one, cst.With):
            found = found.union(bound_in_any_case(one.body.body), *(reads_and_writes(item)[1] for item in one.items))
        else:
            found |= reads_and_writes(one)[1]
    return found


def assigned_value(statement: Statement) -> cst.BaseExpression | None:
    """Returns the value of a plain assignment."""
    if (
        isinstance(statement, cst.SimpleStatementLine)
        and len(statement.body) == 1
        and isinstance(statement.body[0], cst.Assign)
    ):
        return statement.body[0].value
    return None


def assigned_target(statement: Statement) -> cst.BaseExpression | None:
    """Returns the only target of a plain assignment."""
    only = statement.body[0] if assigned_value(statement) and isinstance(statement, cst.SimpleStatementLine) else None
    return only.targets[0].target if isinstance(only, cst.Assign) and len(only.targets) == 1 else None


def is_text(statement: Statement) -> bool:
    """Returns True for a docstring."""
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, cst.SimpleString | cst.ConcatenatedString)
    )
