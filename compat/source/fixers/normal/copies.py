"""Copies of hyperparameters: what a function does not change in its copy is that of the original."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import changed_in_place
from estimator_bridge.compat.source.fixers.script import Script, code, nodes, simple_name

_NETWORK = re.compile(r"\b(get_variable|variable_scope|layers\.\w)")
_COPIES = ("copy.copy", "copy.deepcopy")
_BINDING = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.Param, cst.AsName, cst.NamedExpr, cst.Del)


def names_of_originals(script: Script) -> dict[cst.CSTNode, str]:
    """Returns the names to write otherwise, so that functions read from a copy only what they change in it.

    Example:
        >>> script = Script('''import copy
        ... def network(config, training):
        ...     config = copy.deepcopy(config)
        ...     if not training:
        ...         config.rate = 0.0
        ...     return tf.layers.dense(x, config.units), config.rate
        ... ''')
        >>> sorted(names_of_originals(script).values())
        ['own_config', 'own_config', 'own_config']
    """
    taken = {simple_name(one) for one in nodes(script.module, cst.Name)}
    functions = [one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
    methods = {
        one.name.value
        for each in nodes(script.module, cst.ClassDef)
        for one in nodes(each, cst.FunctionDef)
        if isinstance(one, cst.FunctionDef)
    }
    found: dict[cst.CSTNode, str] = {}
    for function in functions:
        if not _NETWORK.search(code(function)):
            continue
        for target, original, behind in _copies(script, function):
            own = f"own_{target.value}" if target.value == original else target.value
            uses = _uses(target.value, behind)
            is_taken = own in taken if own != target.value else _changes(original, behind)
            if uses is None or is_taken:
                continue
            if target.value in changed_in_place(behind, functions) or not methods.isdisjoint(name for name, _ in uses.values()):
                continue  # a property may be computed from what is changed
            changed = {attribute for attribute, is_changed in uses.values() if is_changed} | _aliased(
                target.value, behind, functions
            )
            new = {target: own} | {one: own if attribute in changed else original for one, (attribute, _) in uses.items()}
            found |= {one: name for one, name in new.items() if name != simple_name(one)}
    return found


def _copies(script: Script, function: cst.FunctionDef) -> Iterator[tuple[cst.Name, str, Sequence[cst.CSTNode]]]:
    """Yields the target of each plain copy in a function, the name of the original, and the statements behind it."""
    lines = list(function.body.body)
    for place, line in enumerate(lines):
        only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        target = only.targets[0].target if isinstance(only, cst.Assign) and len(only.targets) == 1 else None
        value = only.value if isinstance(only, cst.Assign) else None
        if isinstance(value, cst.Call) and isinstance(target, cst.Name) and script.called(value) in _COPIES:
            original = simple_name(value.args[0].value) if len(value.args) == 1 else ""
            before = {simple_name(one) for each in lines[:place] for one in nodes(each, cst.Name)}
            if original and (target.value == original or target.value not in before):
                yield target, original, lines[place + 1 :]


def _uses(name: str, statements: Sequence[cst.CSTNode]) -> dict[cst.CSTNode, tuple[str, bool]] | None:
    """Returns each use of an object with its attribute, and True if that changes; None if the object is used in another way."""
    every = [one for each in statements for one in nodes(each, cst.Attribute)]
    attributes: dict[cst.CSTNode, str] = {
        one.value: one.attr.value for one in every if isinstance(one, cst.Attribute) and simple_name(one.value) == name
    }
    others = {part for each in statements for one in nodes(each, cst.Arg) for part in [getattr(one, "keyword", None)]}
    others |= {one.attr for one in every if isinstance(one, cst.Attribute)}
    names = [one for each in statements for one in nodes(each, cst.Name) if simple_name(one) == name and one not in others]
    calls = [one.func for each in statements for one in nodes(each, cst.Call) if isinstance(one, cst.Call)]
    inside_of_called = {part for one in calls for part in nodes(one, cst.Name) if not isinstance(one, cst.Name)}
    if any(one not in attributes or one in inside_of_called for one in names):
        return None
    stored = {part for each in statements for one in nodes(each, *_BINDING) for part in nodes(_target(one), cst.Name)}
    return {one: (attributes[one], one in stored) for one in names}


def _changes(name: str, statements: Sequence[cst.CSTNode]) -> bool:
    """Returns True if statements may change the original behind its copy, or give its name to something else."""
    bound = [_target(one) for each in statements for one in nodes(each, *_BINDING)]
    calls = [one for each in statements for one in nodes(each, cst.Call) if isinstance(one, cst.Call)]
    given = [one for call in calls for one in (call.func, *(argument.value for argument in call.args))]
    return any(simple_name(one) == name for node in [*bound, *given] for one in nodes(node, cst.Name))


def _aliased(name: str, statements: Sequence[cst.CSTNode], functions: Sequence[cst.FunctionDef]) -> set[str]:
    """Returns the attributes of an object that have other names, too, by which they are changed."""
    targets = [_target(one) for each in statements for one in nodes(each, cst.AssignTarget, cst.AugAssign)]
    augmented = {simple_name(_target(one)) for each in statements for one in nodes(each, cst.AugAssign)}
    stored = {simple_name(one) for node in targets if not isinstance(node, cst.Name) for one in nodes(node, cst.Name)}
    changed = changed_in_place(statements, functions) | augmented | stored
    lines = [one for each in statements for one in nodes(each, cst.Assign) if isinstance(one, cst.Assign)]
    return {
        line.value.attr.value
        for line in lines
        if isinstance(line.value, cst.Attribute)
        and simple_name(line.value.value) == name
        and any(simple_name(one.target) in changed for one in line.targets)
    }


def _target(node: cst.CSTNode) -> cst.CSTNode:
    target = getattr(node, "target", None) or getattr(node, "name", None)
    return target if isinstance(target, cst.CSTNode) else node
