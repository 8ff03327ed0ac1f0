"""A parsed script with the meaning of its names, and helpers that read and build expressions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider, QualifiedNameProvider, QualifiedNameSource

from estimator_bridge.compat.source.fixers.same_names import public_name
from estimator_bridge.compat.source.removed_names.contrib_modules import is_module
from estimator_bridge.compat.source.surface import canonical

LOGGERS = tuple(
    f"tensorflow.{module}.{hook}"
    for module in ("train", "estimator")
    for hook in ("LoggingTensorHook", "StepCounterHook", "SummarySaverHook")
)
"""Hooks that show values and change nothing."""
TPU = "tensorflow.tpu."
"""Module of what runs on TPUs; contrib and Estimators have their own, with the same names."""
_TPU_MODULES = ("tensorflow.contrib.tpu.", "tensorflow.estimator.tpu.", "tensorflow.contrib.cluster_resolver.TPU")
_BELOW = re.compile(r"python\.(tpu|ops)\.\w+\.")
"""Modules below those, from which scripts import the same names."""
SPEC = "tensorflow.estimator.EstimatorSpec"
_NAMED = {
    f"tensorflow.{module}"
    for module in (
        "keras",
        "keras.layers",
        "layers",
        "contrib",
        "contrib.layers",
        "contrib.tpu",
        "estimator",
        "estimator.ModeKeys",
        "losses",
        "metrics",
        "nn",
        "train",
    )
}
"""Modules to which scripts give names of their own."""
Arguments = dict[str, cst.BaseExpression]


_Node = TypeVar("_Node", bound=cst.CSTNode)
_Found = TypeVar("_Found")


class Script:
    """A parsed script.

    Args:
        text: Source in Python 3.
        may_make_layers: Function that returns True for a dotted name of another module that may make layers, or, with ``only_unknown``, of one
            that is not converted with the script; None if no module is known.
        methods: Functions that stand for methods of objects.
        attributes: Variables that stand for attributes of objects; all functions that stand for methods share them.

    Attributes:
        module: Syntax tree with comments and blank lines.
        modules: Names of the script's own for modules of TensorFlow, as by ``layers = tf.layers``, and the modules.

    Raises:
        libcst.ParserSyntaxError: The text is not Python 3.
    """

    def __init__(
        self,
        text: str,
        may_make_layers: Callable[..., bool] | None = None,
        methods: frozenset[str] = frozenset(),
        attributes: frozenset[str] = frozenset(),
    ) -> None:
        self.may_make_layers = may_make_layers or (lambda name, only_unknown=False: False)
        self.methods, self.attributes = methods, attributes
        self._wrapper = _wrapper(text)
        self.module = self._wrapper.module
        self._names = dict(self._wrapper.resolve(QualifiedNameProvider))
        self._has_star = any(
            isinstance(one, cst.ImportFrom) and isinstance(one.names, cst.ImportStar)
            for one in nodes(self.module, cst.ImportFrom)
        )
        self._origins: dict[cst.CSTNode, cst.CSTNode] = {}
        self.modules: dict[str, str] = {}
        self.modules = self._modules_with_names()

    @functools.cached_property
    def _positions(self) -> dict[cst.CSTNode, CodeRange]:
        return dict(self._wrapper.resolve(PositionProvider))

    def _modules_with_names(self) -> dict[str, str]:
        """Returns the modules of TensorFlow by the names that the script gives to them, and to nothing else."""
        found: dict[str, set[str]] = {}
        for node in nodes(self.module, cst.Assign):
            assert isinstance(node, cst.Assign)
            for target in node.targets:
                value = self.name(node.value) if isinstance(target.target, cst.Name) else ""
                for name in nodes(target, cst.Name):
                    found.setdefault(simple_name(name), set()).add(value)
        others = nodes(self.module, cst.Param, cst.FunctionDef, cst.ClassDef, cst.For, cst.CompFor, cst.AsName)
        taken = {simple_name(name) for node in others for part in _bound_by(node) for name in nodes(part, cst.Name)}
        return {
            name: next(iter(values))
            for name, values in found.items()
            if name not in taken and len(values) == 1 and (values <= _NAMED or all(map(is_of_contrib, values)))
        }

    def name(self, node: cst.CSTNode) -> str:
        """Returns the imported name that an expression means, e.g. ``tensorflow.layers.dense``; empty for all else."""
        root = node
        while isinstance(root, cst.Attribute):
            root = root.value
        if not isinstance(root, cst.Name):  # libcst would name the method of a call's result by the function called
            return ""
        found = self._names.get(node, ())
        names = found() if callable(found) else found
        if not names and self._has_star and root.value == "tf":  # of one of the script's own modules
            return _known("tensorflow" + code(node).removeprefix("tf"))
        imported = {_known(one.name) for one in names if one.source is QualifiedNameSource.IMPORT}
        if not imported and root.value in self.modules:
            return _known(code(node).replace(root.value, self.modules[root.value], 1))
        return imported.pop() if len(imported) == 1 else ""

    def imported_as(self, node: cst.Name) -> str:
        """Returns what a name means that an import alone binds, as the import spells it; empty for all else."""
        found = self._names.get(node, ())
        names = list(found() if callable(found) else found)
        is_import = len(names) == 1 and names[0].source is QualifiedNameSource.IMPORT
        return names[0].name if is_import else ""

    def may_be_imported(self, node: cst.Name) -> bool:
        """Returns False for a name that means a variable, a function or a class of the script alone."""
        found = self._names.get(node, ())
        names = list(found() if callable(found) else found)
        return not names or any(one.source is QualifiedNameSource.IMPORT for one in names)

    def module_behind(self, node: cst.CSTNode) -> str:
        """Returns the module for which the script has a name of its own, if an expression begins with that; empty for all else."""
        while isinstance(node, cst.Attribute):
            node = node.value
        return self.modules.get(simple_name(node), "")

    def copied(self, node: _Node) -> _Node:
        """Returns a copy of a part of the script, whose names mean the same."""
        return self._known_as(node, node.deep_clone())

    def replaced(self, node: _Node, new: Mapping[cst.CSTNode, cst.BaseExpression]) -> _Node:
        """Returns a part of the script with other expressions in the place of some.

        Args:
            node: Part of the script.
            new: Expression for each one that goes.
        """
        changed = node.visit(_Replacing(new))
        assert isinstance(changed, type(node))
        return self._known_as(node, changed, new)

    def renamed(self, node: _Node, names: Mapping[str, str]) -> _Node:
        """Returns a part of the script with other variables in the place of some."""
        changed = node.visit(_Renaming(node, names))
        self.modules |= {new: self.modules[old] for old, new in names.items() if old in self.modules}
        assert isinstance(changed, type(node))
        return self._known_as(node, changed)

    def _known_as(self, node: _Node, copy: _Node, without: Collection[cst.CSTNode] = ()) -> _Node:
        pending: list[tuple[cst.CSTNode, cst.CSTNode]] = [(node, copy)]
        while pending:
            old, new = pending.pop()
            if old in without:
                continue
            self._origins[new] = self.origin(old)
            if old in self._names:
                self._names[new] = self._names[old]
            if old in self._positions:
                self._positions[new] = self._positions[old]
            pending += zip(children(old), children(new), strict=True)
        return copy

    def placed(self, node: _Node, old: cst.CSTNode) -> _Node:
        """Returns a node that stands where another one of the script stood."""
        if old in self._positions:
            self._positions[node] = self._positions[old]
        self._origins[node] = self.origin(old)
        return node

    def origin(self, node: cst.CSTNode) -> cst.CSTNode:
        """Returns the part of the script that a node is a copy of; the node itself if it is none."""
        return self._origins.get(node, node)

    def imported(self) -> Iterator[str]:
        """Yields the imported names that the script uses."""
        yield from filter(None, (self.name(node) for node in nodes(self.module, cst.Attribute, cst.Name)))

    def called(self, node: cst.CSTNode | None) -> str:
        """Returns the imported name that an expression calls; empty for all else."""
        return self.name(node.func) if isinstance(node, cst.Call) else ""

    def line(self, node: cst.CSTNode) -> int:
        """Returns the line in which a node of the script begins, from 1; 1 for a node that was built."""
        place = self._positions.get(node)
        return place.start.line if place else 1


@functools.lru_cache(maxsize=8)
def _wrapper(text: str) -> MetadataWrapper:
    """Returns the syntax tree of a script, whose names each way of converting it looks up again."""
    return MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)


@functools.cache
def _known(name: str) -> str:
    """Returns the one spelling of a name below ``tensorflow``."""
    name = public_name(canonical(name))
    module = next((one for one in _TPU_MODULES if name.startswith(one)), None)
    if module is None:
        return name
    return f"{TPU}{name.rpartition('.')[2]}" if module == _TPU_MODULES[2] else TPU + _BELOW.sub("", name.removeprefix(module))


def _bound_by(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yields the names that a definition, a parameter, a loop or an ``as`` binds."""
    yield from filter(None, (getattr(node, part, None) for part in ("name", "target")))


class _Replacing(cst.CSTTransformer):
    def __init__(self, new: Mapping[cst.CSTNode, cst.BaseExpression]) -> None:
        super().__init__()
        self._new = new

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        return self._new.get(original_node, updated_node)


class _Renaming(cst.CSTTransformer):
    """Renames variables of a node; a function inside of it keeps the names of its own parameters."""

    def __init__(self, node: cst.CSTNode, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = [names]
        functions = [one for one in nodes(node, cst.FunctionDef) if isinstance(one, cst.FunctionDef) and one is not node]
        self._own = {one: [each for each in nodes(one.params, cst.Param) if isinstance(each, cst.Param)] for one in functions}
        self._inner = {each for own in self._own.values() for each in own}

    def visit_FunctionDef_body(self, node: cst.FunctionDef) -> None:
        own = {one.name.value for one in self._own.get(node, ())}
        self._names.append({name: new for name, new in self._names[-1].items() if name not in own})

    def leave_FunctionDef_body(self, node: cst.FunctionDef) -> None:
        self._names.pop()

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        return updated_node.with_changes(name=original_node.name) if original_node in self._inner else updated_node

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self._names[-1].get(updated_node.value, updated_node.value))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


_OF_SEVERAL = cst.BinaryOperation | cst.UnaryOperation | cst.BooleanOperation | cst.Comparison | cst.IfExp | cst.Lambda


class _WithValues(cst.CSTTransformer):
    """Puts values in the place of names."""

    def __init__(self, values: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._values = values

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return isinstance(self._values.get(simple_name(node.value)), cst.Name | cst.Attribute | cst.Subscript)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = self._values.get(original_node.value, updated_node)
        return parsed(f"({code(value)})") if isinstance(value, _OF_SEVERAL) and not value.lpar else value


def with_values(node: cst.BaseExpression, values: Mapping[str, cst.BaseExpression]) -> cst.BaseExpression:
    """Returns an expression with values in the place of names.

    Example:
        >>> code(with_values(parsed("a * f(b, a=b)"), {"a": parsed("c + 1"), "b": parsed("2")}))
        '(c + 1) * f(2, a=2)'
    """
    changed = node.visit(_WithValues(values))
    assert isinstance(changed, cst.BaseExpression)
    return changed


def arguments(call: cst.Call, parameters: Sequence[str]) -> Arguments | None:
    """Returns the arguments of a call by the names of their parameters.

    Args:
        call: Call.
        parameters: Names of the function's parameters, in their order.

    Returns:
        None if there are more arguments than parameters, or a ``*`` or ``**`` argument.

    Example:
        >>> call = cst.parse_expression("f(1, b=2)")
        >>> sorted(arguments(call, ("a", "b")))
        ['a', 'b']
    """
    found: Arguments = {}
    for place, argument in enumerate(call.args):
        if argument.star or (argument.keyword is None and place >= len(parameters)):
            return None
        found[argument.keyword.value if argument.keyword else parameters[place]] = argument.value
    return found


def is_of_contrib(name: str) -> bool:
    """Returns True for a module of ``tf.contrib``.

    Example:
        >>> is_of_contrib("tensorflow.contrib.slim"), is_of_contrib("tensorflow.contrib.slim.conv2d")
        (True, False)
    """
    package, _, module = name.partition(".contrib.")
    return package == "tensorflow" and bool(module) and is_module(*module.split("."))


def makes(script: Script, node: cst.CSTNode, name: str) -> bool:
    """Returns True for a function or class that calls an imported name, e.g. ``tensorflow.estimator.EstimatorSpec``."""
    return any(script.called(one) == name for one in nodes(node, cst.Call))


def code(node: cst.CSTNode) -> str:
    """Returns the source text of a node."""
    return cst.Module([]).code_for_node(node)


def parsed(text: str) -> cst.BaseExpression:
    """Returns the expression of a source text; one of several lines gets parentheses."""
    return cst.parse_expression(f"({text})" if "\n" in text else text)


def simple_name(node: cst.CSTNode | None) -> str:
    """Returns the identifier that an expression is; empty for all else."""
    return node.value if isinstance(node, cst.Name) else ""


def nodes(root: cst.CSTNode, *kinds: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """Yields a node and the nodes below it that have one of some classes, in the order of the source."""
    return iter(_nodes(root, kinds))


_kept: list[functools._lru_cache_wrapper[Any]] = []


def known_of_nodes(function: Callable[..., _Found]) -> functools._lru_cache_wrapper[_Found]:
    """Keeps the results of a function of nodes, which cannot change, until ``forget_nodes``."""
    kept = functools.lru_cache(maxsize=200_000)(function)
    _kept.append(kept)
    return kept


@known_of_nodes
def _nodes(root: cst.CSTNode, kinds: tuple[type[cst.CSTNode], ...]) -> tuple[cst.CSTNode, ...]:
    found = []
    pending = [root]
    while pending:
        node = pending.pop()
        if _is_of(type(node), kinds):
            found.append(node)
        pending.extend(reversed(children(node)))
    return tuple(found)


@functools.cache
def _is_of(kind: type[cst.CSTNode], kinds: tuple[type[cst.CSTNode], ...]) -> bool:
    """Returns True for a subclass of one of some classes; ``isinstance`` asks libcst's abstract classes, which takes most of the time."""
    return issubclass(kind, kinds)


@known_of_nodes
def children(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """Returns the parts of a node; libcst copies the node to find them, and the same ones are asked for often."""
    return tuple(node.children)


def forget_nodes() -> None:
    """Drops what is known of the nodes of scripts."""
    for kept in _kept:
        kept.cache_clear()
