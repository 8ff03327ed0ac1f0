"""Objects and methods that make a model function's network as functions inside of the model function."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeGuard

_SPEC = "EstimatorSpec"
_MAKES = re.compile(
    r"\b(layers|slim|nn|rnn|rnn_cell|contrib|keras|feature_column|metrics)\.\w|\bget_variable\b|\bvariable_scope\b|Optimizer\b|ModeKeys\b"
)
_MOST = 30
_OF_DICTS = ("get", "items", "keys", "values", "copy", "format")
_ESTIMATOR = re.compile(r"^(\w+\.)*Estimator$")
_BY_NAME = ("getattr", "hasattr", "setattr", "delattr")
_NO_BASE = ("object", "abc.ABC", "ABC")
_Edits = dict[tuple[int, int], tuple[int, str]]
_Function = ast.FunctionDef
_Methods = Mapping[str, tuple[str, ast.FunctionDef]]


@dataclasses.dataclass(frozen=True)
class Unfolded:
    """A script whose model functions have no objects of its own classes.

    Attributes:
        text: Source of the script.
        lines: Line of the old script for each line of the new one.
        functions: Names of the functions that stand for methods, and whose bodies have to be put in the place of their calls.
        variables: Names of the variables that stand for attributes.
        left_out: Line and name of each method that nothing calls, of a class whose objects are functions now.
        moved: Classes with their methods that are functions now.
    """

    text: str
    lines: tuple[int, ...]
    functions: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    left_out: tuple[tuple[int, str], ...] = ()
    moved: frozenset[tuple[str, str]] = frozenset()


def unfolded(text: str, imported: Collection[str] = ()) -> Unfolded:
    """Returns a script whose model functions call functions where they called methods of objects of the script's own classes.

    Args:
        text: Source in Python 3.
        imported: Classes that other modules import.

    Example:
        >>> script = '''class Net:
        ...     def __init__(self, n):
        ...         self.n = n
        ...     def __call__(self, x):
        ...         return tf.layers.dense(x, self.n)
        ... def model_fn(features, labels, mode):
        ...     net = Net(3)
        ...     y = net(features)
        ...     return tf.estimator.EstimatorSpec(mode, loss=y)
        ... '''
        >>> print(unfolded(script).text)
        def model_fn(features, labels, mode):
            def net_init(n):
                net_n = n
            def net_call(x):
                return tf.layers.dense(x, net_n)
            net_init(3)
            y = net_call(features)
            return tf.estimator.EstimatorSpec(mode, loss=y)
        <BLANKLINE>
    """
    found = Unfolded(text, tuple(range(1, text.count("\n") + 2)))
    for _ in range(_MOST):
        step = _Step(found)
        new = step.with_estimator(imported) or step.with_method(imported) or step.with_object()
        if new is None or not _parses(new.text):
            break
        found = new
    return found


def _parses(text: str) -> bool:
    """Returns False for a source that mixes tabs and spaces now."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class _Step:
    def __init__(self, before: Unfolded) -> None:
        self._before = before
        self._lines = before.text.split("\n")
        self._tree = ast.parse(before.text)
        self._classes = {one.name: one for one in self._tree.body if isinstance(one, ast.ClassDef)}
        self._left_out: list[tuple[int, str]] = []
        self._moved_now: set[tuple[str, str]] = set()

    def with_estimator(self, imported: Collection[str]) -> Unfolded | None:
        """Returns the script with one class of Estimators as a function that returns one; None if there is none."""
        for owner in (one for name, one in self._classes.items() if name not in imported):
            bases = [*map(ast.unparse, owner.bases)]
            if len(bases) == 1 and _ESTIMATOR.search(bases[0]) and bases[0] not in self._classes:
                new = self._as_maker(owner, bases[0])
                if new is not None:
                    return new
        return None

    def _as_maker(self, owner: ast.ClassDef, base: str) -> Unfolded | None:
        """Returns the script with a class of Estimators as a function, in which the methods are functions and the attributes variables."""
        methods = {one.name: one for one in owner.body if isinstance(one, _Function)}
        first = methods.pop("__init__", None)
        last = first.body[-1] if first is not None else None
        made = last.value if isinstance(last, ast.Expr) else None
        if first is None or not isinstance(made, ast.Call) or not self._is_plain(owner, first, methods, made):
            return None
        asked = {one.attr: one for one in ast.walk(owner) if _is_of_self(one)}
        stored = {one.attr for one in ast.walk(first) if _is_of_self(one) and isinstance(one.ctx, ast.Store)}
        own = {one.arg: one.value.id for one in made.keywords if one.arg == "params" and isinstance(one.value, ast.Name)}
        names = [*methods, *stored, *own]
        spelled = {name: f"{name.strip('_')}_of_{owner.name}" for name in names}
        around = [one for one in ast.walk(self._tree) if isinstance(one, ast.Attribute) and not _is_of_self(one)]
        is_asked = any(one.attr in {*methods, *stored} for one in around) or {*spelled.values()} & self._taken()
        hidden = set[str]().union(*map(_free_names, methods.values())) & _bound_names(first)
        if is_asked or hidden or len({*spelled.values()}) < len(names):
            return None
        spelled |= {"_params": spelled["params"]} if own else {}
        if not {*methods} <= asked.keys() <= spelled.keys():
            return None

        def of(node: ast.AST) -> tuple[ast.AST, str] | None:
            if node is made.func:
                return node, f"return {base}"
            return (node, spelled[node.attr]) if _is_of_self(node) else None

        shift = " " * (first.body[0].col_offset - first.col_offset)
        whole = self._moved(first, owner.name, "", of)
        behind = first.body[1] if ast.get_docstring(first) is not None and len(first.body) > 1 else first.body[0]
        head, body = (first.body[0].lineno - first.lineno, behind.lineno - first.lineno)
        inner = [piece for one in methods.values() for piece in self._moved(one, spelled[one.name], shift, of)]
        of_methods = [_lines_of(one) for one in (first, *methods.values())]
        outside = [
            (shift + self._lines[number - 1].strip(), number)
            for number in range(owner.lineno + 1, (owner.end_lineno or 0) + 1)
            if self._lines[number - 1].strip() and not any(a <= number <= b for a, b in of_methods)
        ]
        end = made.lineno - first.lineno
        kept = [(f"{shift}{spelled['params']} = {own['params']}", made.lineno)] if {"params", "_params"} & asked.keys() else []
        pieces = [*whole[:head], *outside, *whole[head:body], *inner, *whole[body:end], *kept, *whole[end:]]
        return self._written({_lines_of(owner): pieces}, {}, set(), {spelled[name] for name in stored})

    def _is_plain(self, owner: ast.ClassDef, first: _Function, methods: Mapping[str, _Function], made: ast.Call) -> bool:
        """Returns True for a class whose objects are only made, and whose constructor alone sets attributes and ends with that of its base."""
        every = [first, *methods.values()]
        nested = [one for one in ast.walk(first) if isinstance(one, _Function) and one is not first]
        later = [node for one in (*nested, *methods.values()) for node in ast.walk(one)]
        within = {node for one in every for node in ast.walk(one)}
        allowed = {*ast.walk(made.func), *(one.value for one in within if _is_of_self(one))}
        allowed |= {one.func for one in ast.walk(self._tree) if isinstance(one, ast.Call)}
        docs = {one.value for one in within if isinstance(one, ast.Expr)}
        texts = (one.value for one in within - docs if isinstance(one, ast.Constant))
        return (
            re.fullmatch(r"super\(.*\)\.__init__", ast.unparse(made.func)) is not None
            and all(one in every or isinstance(one, ast.Expr | ast.Pass) for one in owner.body)
            and not (owner.decorator_list or owner.keywords)
            and not any(one.decorator_list or _parameters(one)[:1] != ["self"] for one in every)
            and not any(_is_of_self(one) and isinstance(one.ctx, ast.Store) for one in later)
            and all(one in allowed for one in ast.walk(self._tree) if _is_name(one, owner.name))
            and all(one in allowed for one in within if _is_name(one, "self"))
            and not any(_is_name(one, "super") for one in within - {*ast.walk(made.func)})
            and first.body[0].lineno > first.lineno
            and not any(isinstance(one, str) and "\n" in one for one in texts)
        )

    def with_method(self, imported: Collection[str]) -> Unfolded | None:
        """Returns the script with one method that is a model function as a function inside of the method; None if there is none."""
        for owner in self._classes.values():
            for method in owner.body:
                names = _parameters(method) if isinstance(method, _Function) else []
                inner = [one for one in ast.walk(method) if isinstance(one, _Function) and one is not method]
                is_model = {"features", "mode"} <= set(names) and names[0] == "self" and _SPEC in ast.unparse(method)
                if isinstance(method, _Function) and is_model and not any(_SPEC in ast.unparse(one) for one in inner):
                    return self._as_builder(owner, method, owner.name in imported)
        return None

    def _as_builder(self, owner: ast.ClassDef, method: _Function, is_imported: bool) -> Unfolded | None:
        methods = {one.name: one for one in owner.body if isinstance(one, _Function)}
        reached = self._reached(method, methods)
        if reached is None or any(isinstance(one, ast.Name) and one.id == "super" for one in ast.walk(method)):
            return None
        uses = [one for one in ast.walk(self._tree) if isinstance(one, ast.Attribute) and one.attr == method.name]
        inside = {*ast.walk(owner)}
        made = {
            target.id
            for one in ast.walk(self._tree)
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and _is_name(one.value.func, owner.name)
            for target in one.targets
            if isinstance(target, ast.Name)
        }
        own = [one for one in uses if one in inside and _is_of_self(one)]
        of_objects = [one for one in uses if isinstance(one.value, ast.Name) and one.value.id in made]
        if (is_imported and not uses) or len(own) + len(of_objects) < len(uses):
            return None
        given = [
            one.value
            for call in ast.walk(self._tree)
            if isinstance(call, ast.Call)
            for one in call.keywords
            if one.arg == "model_fn"
        ]
        given += [
            call.args[0]
            for call in ast.walk(self._tree)
            if isinstance(call, ast.Call) and call.args and "Estimator" in ast.unparse(call.func)
        ]
        if any(one not in given for one in uses) or method.decorator_list:
            return None
        indent = " " * (method.col_offset + 4)
        moved = [method, *map(methods.__getitem__, reached)]
        kept = self._kept_in_a_call(owner, moved)
        calls = [one.func for each in moved for one in ast.walk(each) if isinstance(one, ast.Call)]
        unknown = [one for one in calls if self._may_make_layers(one, methods)]
        if kept is None or (kept and is_imported) or unknown:
            return None  # the model would keep tensors of the first call, or make layers in each call
        taken = self._taken()
        spelled = {name: f"{name.strip('_')}_of_{owner.name}" for name in (*reached, *kept)}
        spelled |= {name: name for name in kept if name not in taken}

        def of(node: ast.AST) -> tuple[ast.AST, str] | None:
            if _is_of_self(node) and node.attr in spelled:
                return node, spelled[node.attr]
            return (node, "outer") if isinstance(node, ast.Name) and node.id == "self" else None

        pieces = [
            (f"{' ' * method.col_offset}def {method.name}(self):", method.lineno),
            (f"{indent}outer = self", method.lineno),
        ]
        for name in reached:
            pieces += self._moved(methods[name], spelled[name], indent, of)
        inner = "model_fn" if method.name != "model_fn" else f"model_fn_of_{owner.name}"
        pieces += self._moved(method, inner, indent, of)
        pieces.append((f"{indent}return {inner}", method.end_lineno or 0))
        edits: _Edits = {(one.lineno, one.end_col_offset or 0): (one.end_col_offset or 0, "()") for one in uses}
        spans = {_lines_of(method): pieces}
        others = {
            one.attr
            for one in ast.walk(self._tree)
            if isinstance(one, ast.Attribute)
            and not any(a <= one.lineno <= b for a, b in (_lines_of(methods[name]) for name in [*reached, method.name]))
        }
        spans |= {_lines_of(methods[name]): [] for name in reached if name not in others}
        return self._written(spans, edits, {spelled[name] for name in reached}, {spelled[name] for name in kept})

    def _kept_in_a_call(self, owner: ast.ClassDef, moved: Sequence[_Function]) -> list[str] | None:
        """Returns the attributes that methods set and nothing else reads; None if something else does."""
        inside = {node for one in moved for node in ast.walk(one)}
        stored = {one for one in inside if _is_of_self(one) and not isinstance(one.ctx, ast.Load)}
        names = {one.attr for one in stored if _is_of_self(one)}
        deeper = (one for one in inside - {*moved} if isinstance(one, _Function | ast.Lambda))
        others = {one for one in ast.walk(self._tree) if isinstance(one, ast.Attribute) and one.attr in names} - inside
        others_of_class = [part for part in owner.body if not isinstance(part, _Function)]
        of_class = {one.name for one in owner.body if isinstance(one, _Function)}
        of_class |= {one.id for part in others_of_class for one in ast.walk(part) if isinstance(one, ast.Name)}
        every = {*ast.walk(owner)}
        known = {one.value for one in every if _is_of_self(one) and one.attr != "__dict__"}
        known |= {each for one in every if isinstance(one, ast.Call) and _is_name(one.func, "super") for each in one.args}
        whole = {one for one in every if _is_name(one, "self")} - known
        has_base = not all(ast.unparse(base) in _NO_BASE for base in owner.bases)
        asking = (one for one in ast.walk(self._tree) if isinstance(one, ast.Call) and ast.unparse(one.func) in _BY_NAME)
        by_name = {each.value for one in asking for each in one.args if isinstance(each, ast.Constant)}
        by_name |= {"vars", "__dict__"} & {
            *self._taken(),
            *(one.attr for one in ast.walk(self._tree) if isinstance(one, ast.Attribute)),
        }
        is_asked = (
            others
            or whole
            or has_base
            or by_name & {*names, "vars", "__dict__"}
            or names & of_class
            or any(stored & {*ast.walk(one)} for one in deeper)
        )
        return None if names and is_asked else sorted(names)

    def _may_make_layers(self, called: ast.expr, methods: Mapping[str, _Function]) -> bool:
        """Returns True for a call of an attribute that is no method of the class, and of which nothing is known."""
        if _is_of_self(called):
            return called.attr not in methods
        return isinstance(called, ast.Attribute) and _is_of_self(called.value) and called.attr not in _OF_DICTS

    def _reached(self, method: _Function, methods: Mapping[str, _Function]) -> list[str] | None:
        """Returns the methods that make layers and that a method calls, each before those that call it; None if one is not plain."""
        found: dict[str, None] = {}

        def visit(one: _Function, around: tuple[str, ...]) -> bool:
            for node in ast.walk(one):
                if (
                    _is_of_self(node)
                    and node.attr in methods
                    and node.attr not in found
                    and self._makes(methods[node.attr], methods, ())
                ):
                    inner = methods[node.attr]
                    if node.attr in around or inner.decorator_list or not visit(inner, (*around, node.attr)):
                        return False
                    found[node.attr] = None
            return True

        return list(found) if visit(method, (method.name,)) else None

    def _makes(self, one: _Function, methods: Mapping[str, _Function], seen: tuple[str, ...]) -> bool:
        if one.name in seen:
            return False
        inner = [node.attr for node in ast.walk(one) if _is_of_self(node) and node.attr in methods]
        return bool(_MAKES.search(ast.unparse(one))) or any(
            self._makes(methods[name], methods, (*seen, one.name)) for name in inner
        )

    def with_object(self) -> Unfolded | None:
        """Returns the script with one object of a model function as functions; None if there is none."""
        for function in self._of_models():
            if any(
                isinstance(one, _Function) and one is not function and _SPEC in ast.unparse(one) for one in ast.walk(function)
            ):
                continue
            for statement in ast.walk(function):
                if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                    continue
                value, target = statement.value, statement.targets[0]
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and isinstance(target, ast.Name):
                    owner = self._classes.get(value.func.id)
                    new = self._without_object(function, statement, target.id, value, owner) if owner is not None else None
                    if new is not None:
                        return new
        return None

    def _of_models(self) -> list[_Function]:
        """Returns the model functions, and the functions of the script that they alone call."""
        functions = {one.name: one for one in self._tree.body if isinstance(one, _Function)}
        found = {one: None for one in ast.walk(self._tree) if isinstance(one, _Function) and self._is_model(one)}
        pending = [*found]
        while pending:
            calls = (one.func for one in ast.walk(pending.pop()) if isinstance(one, ast.Call))
            names = (one.id for one in calls if isinstance(one, ast.Name))
            more = [functions[name] for name in names if name in functions and functions[name] not in found]
            found |= dict.fromkeys(more)
            pending += more
        inside = {node for one in found for node in ast.walk(one)}
        outside = {one.id for one in ast.walk(self._tree) if isinstance(one, ast.Name) and one not in inside}
        return [one for one in found if self._is_model(one) or one.name not in outside]

    def _is_model(self, function: _Function) -> bool:
        """Returns True for a function of the mode that makes an EstimatorSpec, or returns what another such function returns."""
        if _SPEC in ast.unparse(function):
            return True
        others = {one.name for one in self._tree.body if isinstance(one, _Function) and _SPEC in ast.unparse(one)}
        returned = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)]
        calls = [one.func for one in returned if isinstance(one, ast.Call)]
        return "mode" in _parameters(function) and any(isinstance(one, ast.Name) and one.id in others for one in calls)

    def _without_object(
        self, function: _Function, statement: ast.Assign, name: str, made: ast.Call, owner: ast.ClassDef
    ) -> Unfolded | None:
        line = self._classes_of(owner)
        members = _members(line) if line is not None else None
        if line is None or members is None or not _MAKES.search("\n".join(ast.unparse(one) for one in line)):
            return None
        methods, constants = members
        uses = self._uses(function, statement, name, {*methods, *constants, *self._attributes(methods)})
        order = self._order(uses[1], methods, line) if uses is not None else None
        if uses is None or order is None or made.func.lineno != statement.lineno:
            return None
        assigned = {*self._attributes({key: methods[key] for key in order}), *constants}
        functions, variables = {_spelled(name, one) for one in order}, {_spelled(name, one) for one in assigned}
        if (functions | variables) & self._taken() or self._reads_unknown(order, methods, assigned):
            return None
        if "__init__" not in order and (made.args or made.keywords):
            return None
        free = set[str]().union(*(_free_names(methods[key][1]) for key in order), *map(_names, constants.values()))
        if free & (self._bound_around(function) | constants.keys()):
            return None  # they mean something else there
        indent = " " * statement.col_offset
        pieces = [
            (f"{indent}{_spelled(name, key)} = {ast.unparse(part.value)}", part.lineno) for key, part in constants.items()
        ]
        for key in order:
            where, method = methods[key]
            of = functools.partial(self._of_object, name=name, where=where, line=line)
            pieces += self._moved(method, _spelled(name, key), indent, of)
        first, last = statement.lineno, statement.end_lineno or 0
        if "__init__" in order:
            call = "\n".join(self._lines[first - 1 : last])
            start = len(self._lines[first - 1].encode()[: made.func.end_col_offset].decode())
            texts = (indent + _spelled(name, "__init__") + call[start:]).split("\n")
            pieces += [(text, first + place) for place, text in enumerate(texts)]
        spans: dict[tuple[int, int], list[tuple[str, int]]] = {(first, last): pieces}
        moved = {methods[key][1] for key in order}
        self._moved_now = {
            (one.name, part.name) for one in line for part in one.body if isinstance(part, _Function) and part in moved
        }
        for one in line:
            spans |= self._without_class(one, line, made, moved)
        return self._written(spans, uses[0], functions, variables)

    def _bound_around(self, function: _Function) -> set[str]:
        """Returns the names that a function and those around it bind."""
        around = [one for one in ast.walk(self._tree) if isinstance(one, _Function) and function in ast.walk(one)]
        return set[str]().union(*map(_bound_names, around))

    def _taken(self) -> set[str]:
        """Returns the names of the script."""
        names = {one.id for one in ast.walk(self._tree) if isinstance(one, ast.Name)}
        return names | {one.arg for one in ast.walk(self._tree) if isinstance(one, ast.arg)}

    def _uses(self, function: _Function, statement: ast.Assign, name: str, known: set[str]) -> tuple[_Edits, list[str]] | None:
        """Returns the changes of the places that name an object, and the attributes that they name; None if one is not plain."""
        parents = {child: parent for parent in ast.walk(function) for child in ast.iter_child_nodes(parent)}
        edits: _Edits = {}
        wanted = ["__init__"] if "__init__" in known else []
        for one in ast.walk(function):
            if not isinstance(one, ast.Name) or one.id != name:
                continue
            parent = parents[one]
            if isinstance(one.ctx, ast.Store):
                if parent is not statement:
                    return None
                continue
            if isinstance(parent, ast.Attribute) and parent.attr in known and parent.end_lineno == one.lineno:
                end, part = parent.end_col_offset, parent.attr
            elif isinstance(parent, ast.Call) and parent.func is one and "__call__" in known:
                end, part = one.end_col_offset, "__call__"
            else:
                return None
            edits[one.lineno, one.col_offset] = end or 0, _spelled(name, part)
            wanted.append(part)
        return edits, wanted

    def _order(self, wanted: list[str], methods: _Methods, line: list[ast.ClassDef]) -> dict[str, None] | None:
        """Returns the methods that are needed; None if one does more with its object than to name attributes."""
        order: dict[str, None] = {}
        pending = [one for one in wanted if one in methods]
        while pending:
            name = pending.pop(0)
            more = self._calls_within(methods[name], methods, line) if name not in order else []
            if more is None:
                return None
            order[name] = None
            pending += more
        return order

    def _without_class(
        self, owner: ast.ClassDef, line: list[ast.ClassDef], made: ast.Call, moved: set[_Function]
    ) -> dict[tuple[int, int], list[tuple[str, int]]]:
        """Returns the lines of a class with the comments that stay; nothing if something else needs the class."""
        own = {name for one in line for name in ast.walk(one)}
        others = [one for one in ast.walk(self._tree) if isinstance(one, ast.Name) and one.id == owner.name and one not in own]
        if others != [made.func] * (owner is line[0]):
            return {}
        first, last = _lines_of(owner)
        names = {*self._before.moved, *((owner.name, one.name) for one in moved)}
        unused = [one for one in owner.body if isinstance(one, _Function) and (owner.name, one.name) not in names]
        self._left_out += ((self._before.lines[one.lineno - 1], f"{owner.name}.{one.name}") for one in unused)
        of_methods = [_lines_of(one) for one in owner.body if isinstance(one, _Function)]
        inside = (number for number in range(first, last + 1) if not any(a <= number <= b for a, b in of_methods))
        texts = ((self._lines[number - 1].strip(), number) for number in inside)
        return {(first, last): [(text, number) for text, number in texts if text.startswith("#")]}

    def _classes_of(self, owner: ast.ClassDef) -> list[ast.ClassDef] | None:
        """Returns a class and its bases; None if one is not of the script, or is not plain."""
        line = [owner]
        while line[-1].bases:
            base = line[-1].bases[0]
            if len(line[-1].bases) > 1 or line[-1].keywords:
                return None
            if ast.unparse(base) in _NO_BASE or (ast.unparse(base) == "tf.layers.Layer" and _overrides(line)):
                break
            if not isinstance(base, ast.Name) or base.id not in self._classes or len(line) > _MOST:
                return None
            line.append(self._classes[base.id])
        plain = not any(
            one.decorator_list for each in line for one in ast.walk(each) if isinstance(one, _Function | ast.ClassDef)
        )
        return line if plain else None

    def _attributes(self, methods: _Methods) -> set[str]:
        return {
            node.attr
            for _, method in methods.values()
            for node in ast.walk(method)
            if _is_of_self(node) and isinstance(node.ctx, ast.Store)
        }

    def _calls_within(self, found: tuple[str, _Function], methods: _Methods, line: list[ast.ClassDef]) -> list[str] | None:
        """Returns the methods that a method names; None if it does more with its object than to name attributes."""
        where, method = found
        names: list[str] = []
        allowed = set[ast.AST]()
        for node in ast.walk(method):
            target = self._super(node, where, line)
            if target is not None:
                assert isinstance(node, ast.Attribute)
                allowed.update(ast.walk(node))
                if target in methods or node.attr != "__init__":
                    names.append(target)
                elif not _has_no_base(line):
                    return None
            elif _is_of_self(node):
                assert isinstance(node, ast.Attribute)
                allowed.add(node.value)
                names += [node.attr] if node.attr in methods else []
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "self":
                allowed.add(node.func)
                names += ["__call__"]
        bare = [
            node
            for node in ast.walk(method)
            if isinstance(node, ast.Name) and node.id in ("self", "super") and node not in allowed
        ]
        inner = [
            one
            for one in ast.walk(method)
            if isinstance(one, ast.Constant)
            and isinstance(one.value, str)
            and "\n" in one.value
            and ast.get_docstring(method, clean=False) != one.value
        ]
        functions = [one for one in ast.walk(method) if isinstance(one, _Function) and one is not method]
        closed = any(_is_of_self(one) and isinstance(one.ctx, ast.Store) for each in functions for one in ast.walk(each))
        plain = not (bare or inner or closed) and _parameters(method)[:1] == ["self"]
        return names if plain and all(name in methods for name in names) else None

    def _super(self, node: ast.AST, where: str, line: list[ast.ClassDef]) -> str | None:
        """Returns the method that ``super().name`` means."""
        if (
            not isinstance(node, ast.Attribute)
            or not isinstance(node.value, ast.Call)
            or ast.unparse(node.value.func) != "super"
        ):
            return None
        place = next(place for place, one in enumerate(line) if one.name == where)
        for one in line[place + 1 :]:
            if any(isinstance(part, _Function) and part.name == node.attr for part in one.body):
                return f"{one.name}.{node.attr}"
        return f".{node.attr}"

    def _of_object(self, node: ast.AST, name: str, where: str, line: list[ast.ClassDef]) -> tuple[ast.AST, str] | None:
        target = self._super(node, where, line)
        if target is not None:
            return node, _spelled(name, target)
        of_base = self._super(node.func, where, line) if isinstance(node, ast.Call) else None
        if of_base == ".__init__":
            return node, "pass"  # of object, which does nothing
        if _is_of_self(node):
            return node, _spelled(name, node.attr)
        return (node, _spelled(name, "__call__")) if isinstance(node, ast.Name) and node.id == "self" else None

    def _reads_unknown(self, order: Mapping[str, None], methods: _Methods, assigned: set[str]) -> bool:
        reads = {node.attr for key in order for node in ast.walk(methods[key][1]) if _is_of_self(node)}
        return not reads <= {*assigned, *methods}

    def _moved(
        self, method: _Function, name: str, indent: str, of: Callable[[ast.AST], tuple[ast.AST, str] | None]
    ) -> list[tuple[str, int]]:
        """Returns the lines of a method as a function, with the numbers of the old lines."""
        first, last = _lines_of(method)
        edits: _Edits = {}
        pending: list[ast.AST] = list(ast.iter_child_nodes(method))
        while pending:
            node = pending.pop()
            new = of(node) if not isinstance(node, ast.arg) else None
            if new is not None and isinstance(node, ast.expr):
                edits[node.lineno, node.col_offset] = node.end_col_offset or 0, new[1]
            else:
                pending += ast.iter_child_nodes(node)
        own = method.args.args[0]
        following = method.args.args[1:2] or method.args.kwonlyargs[:1]
        if following and following[0].lineno == own.lineno:
            edits[own.lineno, own.col_offset] = following[0].col_offset, ""
        else:
            text = self._lines[own.lineno - 1].encode()
            rest = re.match(rb"\s*,?", text[own.end_col_offset or 0 :])
            edits[own.lineno, own.col_offset] = (own.end_col_offset or 0) + (rest.end() if rest else 0), ""
        start = self._lines[method.lineno - 1].encode().index(method.name.encode(), method.col_offset)
        edits[method.lineno, start] = start + len(method.name.encode()), name
        lines = self._edited(edits, first, last)
        return [
            ((indent + text[method.col_offset :]) if text.strip() else "", first + place) for place, text in enumerate(lines)
        ]

    def _edited(self, edits: _Edits, first: int, last: int) -> list[str]:
        lines = [line.encode() for line in self._lines[first - 1 : last]]
        for (number, start), (end, text) in sorted(edits.items(), reverse=True):
            if first <= number <= last:
                lines[number - first] = lines[number - first][:start] + text.encode() + lines[number - first][end:]
        return [line.decode() for line in lines]

    def _written(
        self, spans: Mapping[tuple[int, int], list[tuple[str, int]]], edits: _Edits, functions: set[str], variables: set[str]
    ) -> Unfolded:
        """Returns the script with other lines in the place of some."""
        lines = self._edited(edits, 1, len(self._lines))
        found: list[tuple[str, int]] = []
        number = 1
        while number <= len(lines):
            span = next((one for one in spans if one[0] == number), None)
            if span is None:
                found.append((lines[number - 1], number))
                number += 1
            else:
                found += spans[span]
                number = span[1] + 1
        before = self._before
        return Unfolded(
            "\n".join(text for text, _ in found), tuple(before.lines[number - 1] for _, number in found),
            before.functions | functions, before.variables | variables, (*before.left_out, *self._left_out),
            before.moved | self._moved_now,
        )  # fmt: skip


def _spelled(name: str, part: str) -> str:
    """Returns the function or the variable that stands for a method or an attribute of an object."""
    return f"{name}_{part.replace('.', '_').replace('__', '').strip('_')}"


def _members(line: list[ast.ClassDef]) -> tuple[_Methods, dict[str, ast.Assign]] | None:
    """Returns the methods and constants of a class and its bases; None if there is anything else."""
    methods: dict[str, tuple[str, ast.FunctionDef]] = {}
    constants: dict[str, ast.Assign] = {}
    for one in reversed(line):
        for part in one.body:
            if isinstance(part, _Function):
                methods[f"{one.name}.{part.name}"] = methods[part.name] = (one.name, part)
            elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and len(part.targets) == 1:
                constants[part.targets[0].id] = part
            elif not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)) and not isinstance(part, ast.Pass):
                return None
    return methods, constants


def _bound_names(function: _Function) -> set[str]:
    """Returns the names that a function binds: its parameters, and what it assigns, imports or defines."""
    names = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    names |= {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    return names | {one.name for one in ast.walk(function) if isinstance(one, _Function) and one is not function}


def _free_names(function: _Function) -> set[str]:
    """Returns the names that a function reads from around it; those in its defaults, too."""
    defaults = [*function.args.defaults, *filter(None, function.args.kw_defaults)]
    read = set[str]().union(*map(_names, function.body))
    return (read - _bound_names(function)).union(*map(_names, defaults))


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_of_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _has_no_base(line: list[ast.ClassDef]) -> bool:
    """Returns True if the last one of a class and its bases is derived from nothing but ``object``."""
    return all(ast.unparse(base) in _NO_BASE for base in line[-1].bases)


def _overrides(line: list[ast.ClassDef]) -> bool:
    """Returns True if classes have a constructor and a call of their own."""
    own = {part.name: part for one in line for part in one.body if isinstance(part, _Function)}
    return {"__init__", "__call__"} <= own.keys() and "super" not in ast.unparse(own["__init__"])


def _parameters(function: ast.AST) -> list[str]:
    return [one.arg for one in function.args.args] if isinstance(function, _Function) else []


def _lines_of(node: ast.FunctionDef | ast.ClassDef) -> tuple[int, int]:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return first, node.end_lineno or node.lineno
