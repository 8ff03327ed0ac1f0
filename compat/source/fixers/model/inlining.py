"""Puts the bodies of a script's own functions in the place of their calls, where a model function leaves its network to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import Statement, is_text, reads_and_writes, rebound
from estimator_bridge.compat.source.fixers.model.layers import layer_function
from estimator_bridge.compat.source.fixers.model.returning import assigning, ends, jumps
from estimator_bridge.compat.source.fixers.script import (
    SPEC,
    Arguments,
    Script,
    arguments,
    children,
    code,
    known_of_nodes,
    makes,
    nodes,
    simple_name,
)

_Block = cst.If | cst.For | cst.With | cst.Else
_MOST = 100
_MAKERS = (
    "tensorflow.get_variable",
    "tensorflow.contrib.",
    "tensorflow.nn.dynamic_rnn",
    "tensorflow.nn.bidirectional_dynamic_rnn",
)
"""Functions that make variables, beside those of layers."""
_PARAMETERS = ("features", "labels", "mode", "params")
"""Parameters of a model function, whose values have one name in it."""
_STATEMENTS = (cst.SimpleStatementLine, cst.With, cst.For, cst.If)


def inlined(
    script: Script, body: Sequence[Statement], functions: dict[str, cst.FunctionDef], wanted: Callable[[str], bool]
) -> tuple[list[Statement], list[str]]:
    """Returns the statements with bodies in the place of calls, and the names of the functions that were called.

    The statements are the functions' own nodes, so that the script still knows what their names mean. Those of a further call are
    copies.

    Args:
        script: Script around the functions.
        body: Statements of a model function.
        functions: The script's functions, by name.
        wanted: Function that returns True for the name of one that has to be put in.
    """
    read = {name for one in body for name in reads_and_writes(one)[0]}
    putting = _Putting(script, functions, wanted, read - _bound(body))
    statements = [part for one in body for part in putting.of_one_line(one)]
    for _ in range(_MOST):
        ended = putting.at_the_end(statements)
        more = putting.put_in(ended, ())
        if more is None and ended == statements:
            break
        statements = ended if more is None else more
    return statements, list(putting.used)


class _Putting:
    def __init__(
        self, script: Script, functions: dict[str, cst.FunctionDef], wanted: Callable[[str], bool], free: set[str]
    ) -> None:
        self._script = script
        self._functions = functions
        self._wanted = wanted
        self._taken = {simple_name(one) for one in nodes(script.module, cst.Name)}
        self._free = free  # names that the model function reads and does not bind, as those of a function around it
        self.used: dict[str, cst.Call] = {}

    def at_the_end(self, body: Sequence[Statement], around: Sequence[Statement] = (), goes_on: bool = False) -> list[Statement]:
        """Returns statements whose last one, if it returns what a function that makes an EstimatorSpec returns, is that function's body.

        Args:
            body: Statements of a model function, or of a test in it.
            around: Statements outside of them.
            goes_on: True if other statements follow.
        """
        body = [
            self._of_test(one, (*around, *body[:place], *body[place + 1 :]), goes_on or place + 1 < len(body))
            if isinstance(one, cst.If)
            else one
            for place, one in enumerate(body)
        ]
        last = body[-1] if body else None
        only = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
        call = only.value if isinstance(only, cst.Return) else None
        name = simple_name(call.func) if isinstance(call, cst.Call) else ""
        function = self._functions.get(name)
        given = _given(call, function) if function is not None and isinstance(call, cst.Call) else None
        others = [*around, *body[:-1]]
        if (
            function is None
            or given is None
            or call is None
            or function.decorators
            or not makes(self._script, function, SPEC)
            or self._script.origin(call) in nodes(function, cst.Call)  # it calls itself
            or (goes_on and not ends(function.body))
            or self._captures(function, others)
        ):
            return list(body)
        assert isinstance(call, cst.Call)
        if name in self.used:
            function = self._script.copied(function)
        passed = {key: value for key, value in given.items() if code(value) != key}
        same = {key: code(value) for key, value in passed.items() if isinstance(value, cst.Name) and value.value in _PARAMETERS}
        rest = {key: value for key, value in passed.items() if key not in same}
        inside = [
            one
            for one in function.body.body
            if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement) and not is_text(one)
        ]
        taken = (
            {each for one in others for each in (*reads_and_writes(one)[0], *reads_and_writes(one)[1])}
            | set(_PARAMETERS)
            | self._free
        )
        own = (_bound(inside) | set(rest)) - {key for key, value in given.items() if code(value) == key}
        clashing = own & taken
        names = {**{key: _renamed(function, key) for key in clashing}, **same}
        if names:
            if set(names.values()) & (taken | own) - set(same.values()) or (set(same.values()) & own):
                return list(body)
            function = self._script.renamed(function, names)
            inside = [
                one
                for one in function.body.body
                if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement) and not is_text(one)
            ]
        self.used.setdefault(name, call)
        bindings = [_assigned(cst.Name(names.get(key, key)), value) for key, value in rest.items()]
        return [*body[:-1], *bindings, *inside]

    def _of_test(self, test: cst.If, around: Sequence[Statement], goes_on: bool) -> cst.If:
        """Returns a test with ``at_the_end`` in each of its branches."""
        rest = test.orelse
        changed: cst.If | cst.Else | None = rest
        if isinstance(rest, cst.If):
            changed = self._of_test(rest, around, goes_on)
        elif rest is not None:
            changed = rest.with_changes(body=self._of_branch(rest.body, around, goes_on))
        body = self._of_branch(test.body, around, goes_on)
        is_same = body is test.body and (
            changed is rest or (isinstance(changed, cst.Else) and rest and changed.body is rest.body)
        )
        return test if is_same else test.with_changes(body=body, orelse=changed)

    def _of_branch(self, block: cst.BaseSuite, around: Sequence[Statement], goes_on: bool) -> cst.BaseSuite:
        if not isinstance(block, cst.IndentedBlock):
            return block
        inside = [one for one in block.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
        new = self.at_the_end(inside, around, goes_on)
        return block.with_changes(body=new) if new != inside else block

    def put_in(
        self, block: Sequence[Statement], around: Sequence[Statement], names: frozenset[str] = frozenset()
    ) -> list[Statement] | None:
        """Returns a block with a body in the place of its first call; None if it has none, or one that cannot be replaced.

        Args:
            block: Statements.
            around: Statements outside of the block.
            names: Names in the headers of the blocks around it.
        """
        for place, statement in enumerate(block):
            if not self._may_change(statement):
                continue
            before = [*around, *map(_that_goes_on, block[:place])]
            others = [*before, *block[place + 1 :]]
            apart = self._apart(statement)
            if apart is not None:
                return [*block[:place], *apart, *block[place + 1 :]]
            _, call = _assignment(statement)
            name = simple_name(call.func) if call is not None else ""
            inside: Sequence[Statement] | None = None
            if call is not None and name in self._functions and self._wanted(name):
                inside = self._body(statement, call, name, others, names)
                if inside is None:
                    return None
            elif isinstance(statement, cst.If | cst.For | cst.With):
                changed = self._of_block(statement, before, others, names)
                inside = [changed] if isinstance(changed, cst.BaseCompoundStatement) else None
            if inside is not None:
                return [*block[:place], *inside, *block[place + 1 :]]
        return None

    def _may_change(self, statement: Statement) -> bool:
        """Returns False for a statement that calls no function that has to be put in, which is most of them."""
        return _has_parts_in_one_line(statement) or any(
            name in self._functions and self._wanted(name) for name in reads_and_writes(statement)[0]
        )

    def of_one_line(self, statement: Statement) -> list[Statement]:
        """Returns the statements of a line, each in a line of its own."""
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) < 2:
            return [statement]
        parts = [one.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for one in statement.body]
        above = [statement.leading_lines, *[[] for _ in parts[1:]]]
        behind = [*[cst.TrailingWhitespace() for _ in parts[1:]], statement.trailing_whitespace]
        lines = [
            statement.with_changes(body=[one], leading_lines=over, trailing_whitespace=after)
            for one, over, after in zip(parts, above, behind, strict=True)
        ]
        return [self._script.placed(one, statement) for one in lines]

    def _apart(self, statement: Statement) -> list[Statement] | None:
        """Returns an assignment of the first call inside of an expression that has to be put in, and the statement with its name.

        Several statements of one line are returned in lines of their own. None if there is no such call, if it is not always made, or if the
        expression makes a layer before: they are counted in order.
        """
        parts = self.of_one_line(statement)
        if len(parts) > 1:
            return parts
        only = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        value = only.value if isinstance(only, cst.Assign | cst.Expr | cst.Return) else None
        calls = list(_in_order_of_calls(value)) if value is not None else []
        place = next((place for place, one in enumerate(calls) if self._is_wanted(one)), None)
        call = calls[place] if place is not None else None
        if call is None or call is value or not isinstance(statement, cst.SimpleStatementLine):
            return None
        within = {*nodes(call, cst.Call)}
        before = [self._script.called(one) for one in calls[:place] if one not in within]
        always = {*_always(value)} if value is not None else set()
        if call not in always or any(layer_function(name) or name.startswith(_MAKERS) for name in before):
            return None
        name = _free(f"{simple_name(call.func)}_output", self._taken)
        self._taken.add(name)
        first = _assigned(cst.Name(name), call).with_changes(leading_lines=statement.leading_lines)
        rest = self._script.replaced(statement, {call: cst.Name(name)})
        return [first, rest.with_changes(leading_lines=[])]

    def _is_wanted(self, call: cst.Call) -> bool:
        name = simple_name(call.func)
        return name in self._functions and self._wanted(name)

    def _body(
        self, statement: Statement, call: cst.Call, name: str, others: Sequence[Statement], names: frozenset[str]
    ) -> list[Statement] | None:
        function = self._functions[name]
        if any(self._script.origin(statement) is one for one in nodes(function, *_STATEMENTS)):
            return None  # it calls itself
        if name in self.used:
            function = self._script.copied(function)
        rest = [one for one in others if not _is_part(self._script, one, self._functions[name])]
        if self._captures(self._functions[name], rest):
            return None
        taken = names.union(self._free, {name}, *(each for one in rest for each in reads_and_writes(one)))
        inside = self._statements(statement, function, set(taken - _bound([statement]) - self._script.attributes))
        if inside is not None:
            self.used.setdefault(name, call)
        return inside

    def _captures(self, function: cst.FunctionDef, around: Sequence[Statement]) -> bool:
        """Returns True if a name of the script that a function reads means something else around the call."""
        others = (_bound(around) | set(_PARAMETERS)) - self._script.attributes - self._script.methods
        is_outside = function in self._script.module.body or function.name.value in self._script.methods
        return is_outside and bool(reads_and_writes(function)[0] & others - {function.name.value})

    def _statements(
        self, statement: Statement, function: cst.FunctionDef, taken: set[str], given: Arguments | None = None
    ) -> list[Statement] | None:
        """Returns the statements that compute the same as an assignment of a call; None if that is not sure."""
        assignment, call = _assignment(statement)
        if given is None:
            given = _given(call, function) if call is not None else None
        body = [
            one
            for one in function.body.body
            if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)
            and not is_text(one)
            and code(one).strip() != "pass"
        ]
        left = jumps(function)
        if given is None or function.decorators or not all(isinstance(one, cst.Return) for one in left):
            return None
        if (assignment is None) is not (not left):
            return None
        shared = _shared(body, given)
        if shared:
            same = {shared.get(name, name): value for name, value in given.items()}
            return self._statements(statement, self._script.renamed(function, shared), taken, same)
        passed = {name: value for name, value in given.items() if code(value) != name}
        read = {name for value in passed.values() for name in reads_and_writes(value)[0]}
        own = _bound(body) - self._script.attributes - {name for name in _changed(body) if name in given and name not in passed}
        clashing = (own | set(passed)) & taken | set(passed) & {*read, *_PARAMETERS}
        if clashing:
            names = {name: _free(_renamed(function, name), taken | own | read) for name in clashing}
            other = self._script.renamed(function, names)
            same = {names.get(name, name): value for name, value in given.items()}
            return self._statements(statement, other, taken, same)
        bindings = [_assigned(cst.Name(name), value) for name, value in passed.items()]
        inner = assigning(body, assignment) if assignment is not None else body
        if inner is None:
            return None
        made = [*bindings, *inner]
        assert isinstance(statement, cst.SimpleStatementLine)
        if not made:
            return made
        made[0] = made[0].with_changes(leading_lines=[*statement.leading_lines, *made[0].leading_lines])
        return made

    def _of_block(
        self, statement: _Block, before: Sequence[Statement], others: Sequence[Statement], names: frozenset[str]
    ) -> _Block | None:
        """Returns a test, a loop, a scope or an else with a body in the place of a call in its first block that has one.

        Args:
            statement: The block.
            before: Statements before it.
            others: Statements before and behind it.
            names: Names in the headers of the blocks around it.
        """
        if isinstance(statement.body, cst.IndentedBlock):
            block = statement.body
            inner = [one for one in block.body if isinstance(one, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
            header = [one for one in children(statement) if one is not block]
            inside = self.put_in(inner, before if ends(block) else others, names | _named_in(header))
            if inside is not None:
                return statement.with_changes(body=block.with_changes(body=inside))
        rest = statement.orelse if isinstance(statement, cst.If) else None
        if rest is None:
            return None
        tested = [one for one in children(statement) if one is not rest]
        changed = self._of_block(rest, before, others, names | _named_in(tested))
        return statement.with_changes(orelse=changed) if changed is not None else None


@known_of_nodes
def _has_parts_in_one_line(node: cst.CSTNode) -> bool:
    """Returns True if several statements stand in a line, of a statement or in its blocks."""
    if isinstance(node, cst.SimpleStatementLine):
        return len(node.body) > 1
    blocks = (one for one in children(node) if isinstance(one, cst.BaseStatement | cst.BaseSuite | cst.Else))
    return any(map(_has_parts_in_one_line, blocks))


def _that_goes_on(statement: Statement) -> Statement:
    """Returns what of a statement those behind it can meet: of a test whose branch returns, the test alone."""
    if isinstance(statement, cst.If) and statement.orelse is None and ends(statement.body):
        return cst.SimpleStatementLine([cst.Expr(statement.test)])
    return statement


def _is_part(script: Script, statement: Statement, function: cst.FunctionDef) -> bool:
    """Returns True for a statement that was put in from a function, or gives one of its parameters a value."""
    parameters = {name for one in function.params.params for name in (one.name.value, _renamed(function, one.name.value))}
    inside = {script.origin(one) for one in nodes(function, *_STATEMENTS)}
    return any(script.origin(one) in inside for one in nodes(statement, *_STATEMENTS)) or (
        script.line(statement) == 1 and _bound([statement]) <= parameters
    )


def _renamed(function: cst.FunctionDef, name: str) -> str:
    """Returns what a variable of a function is called where its own name means something else."""
    return f"{function.name.value}_{name}"


def _free(name: str, taken: set[str]) -> str:
    """Returns a name, with the first number behind it that makes it one that is not taken."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def _in_order_of_calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    """Yields the calls in an expression, each behind those that give it its arguments."""
    for one in children(node):
        yield from _in_order_of_calls(one)
    if isinstance(node, cst.Call):
        yield node


def _always(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yields the parts of an expression that are computed once whenever it is."""
    yield node
    if isinstance(node, cst.Lambda | cst.BaseComp):
        return
    parts = (
        [node.test] if isinstance(node, cst.IfExp) else [node.left] if isinstance(node, cst.BooleanOperation) else node.children
    )
    for one in parts:
        yield from _always(one)


def _assignment(statement: Statement) -> tuple[cst.Assign | None, cst.Call | None]:
    """Returns a statement's only assignment, and the call whose result it takes; no assignment for a call whose result nothing takes."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        if isinstance(only, cst.Expr) and isinstance(only.value, cst.Call):
            return None, only.value
        if isinstance(only, cst.Assign) and isinstance(only.value, cst.Call):
            return only, only.value
    return None, None


def _given(call: cst.Call, function: cst.FunctionDef) -> Arguments | None:
    """Returns the value of each parameter; None if one has none, or if there are parameters with a star."""
    parameters = function.params
    if parameters.star_kwarg or not isinstance(parameters.star_arg, cst.MaybeSentinel) or parameters.kwonly_params:
        return None
    given = arguments(call, [one.name.value for one in parameters.params])
    if given is None:
        return None
    defaults = {one.name.value: one.default for one in parameters.params if one.default is not None}
    values = {**defaults, **given}
    return values if set(values) == {one.name.value for one in parameters.params} else None


def _changed(body: Sequence[Statement]) -> Set[str]:
    """Returns the names whose objects statements change, and that they give no other value."""
    return _bound(body) - frozenset[str]().union(*map(rebound, body))


def _shared(body: Sequence[Statement], given: Arguments) -> dict[str, str]:
    """Returns the parameters whose objects a function changes, with the names that these have where it is called."""
    names = {name: simple_name(given[name]) for name in _changed(body) if name in given}
    known = {one for each in body for part in reads_and_writes(each) for one in part} | given.keys()
    return {name: other for name, other in names.items() if other and other not in known}


def _assigned(target: cst.Name, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)])


def _named_in(parts: Iterable[cst.CSTNode]) -> set[str]:
    return {name for one in parts for names in reads_and_writes(one) for name in names}


def _bound(statements: Sequence[Statement]) -> set[str]:
    return {name for one in statements for name in reads_and_writes(one)[1]}
