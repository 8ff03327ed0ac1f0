"""Division of whole numbers whose quotient becomes a size: a whole number in Python 2, a float in Python 3."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from estimator_bridge.compat.source.reading import Source
from estimator_bridge.compat.source.scopes import Place, Scope
from estimator_bridge.compat.source.verdicts import Kind, SourceFinding, Verdict

_WHOLE_CALLS = frozenset({"builtins.len", "builtins.int", "builtins.ord"})
_SIZE_CALLS: dict[str, tuple[int, ...] | None] = {  # which positional arguments are sizes; None: all
    **dict.fromkeys(("builtins.range", "builtins.xrange")),
    **dict.fromkeys(("numpy.zeros", "numpy.ones", "numpy.empty", "tensorflow.zeros", "tensorflow.ones"), (0,)),
    **dict.fromkeys(
        ("tensorflow.placeholder", "tensorflow.reshape", "tensorflow.layers.dense", "tensorflow.get_variable"), (1,)
    ),
    "tensorflow.layers.conv2d": (1, 2, 3),
}
_SIZE_METHODS = frozenset({"reshape", "batch", "take", "skip", "repeat", "shuffle"})
_SIZE_KEYWORDS = (
    "shape units filters kernel_size strides pool_size num_units num_outputs num_buckets hash_bucket_size dimension depth size "
    "batch_size buffer_size num_epochs save_checkpoints_steps hidden_units"
)

_NUMBERS_OF_STEPS = frozenset({"steps", "max_steps"})
"""Keywords that a float serves, too: an Estimator compares it with the step."""
_PARTS_OF_A_STEP = (
    "Whole in Python 2, a float in Python 3: a part of a step is a step more. Write //; run with --py2 for Python 2's division."
)


def judge_division(source: Source, verdict: Verdict) -> Iterator[SourceFinding]:
    """Yields a finding for each quotient of visibly whole numbers that is used where only a whole number fits.

    Args:
        source: Parsed file.
        verdict: Verdict of the findings.
    """
    if any(dotted == "__future__.division" for dotted, _, _ in source.names.imports):
        return
    message = "Whole in Python 2, a float in Python 3, and used as a size. Write //; run with --py2 for Python 2's division."
    for expression, place in _sizes(source):
        for node in _whole_quotients(expression, place.scope, source):
            yield SourceFinding.at(node, "/", Kind.PYTHON2, verdict, message)
    for call, place in source.names.nodes(ast.Call):
        for keyword in call.keywords:
            if keyword.arg in _NUMBERS_OF_STEPS:
                for node in _whole_quotients(keyword.value, place.scope, source):
                    lesser = Verdict.LOOK if verdict is Verdict.HUMAN else verdict
                    yield SourceFinding.at(node, "/", Kind.PYTHON2, lesser, _PARTS_OF_A_STEP)


def _whole_quotients(expression: ast.expr, scope: Scope, source: Source) -> Iterator[ast.BinOp]:
    for node in _parts(expression, scope, frozenset()):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_whole(node, scope, source, 0):
            yield node


def _sizes(source: Source) -> Iterator[tuple[ast.expr, Place]]:
    for call, place in source.names.nodes(ast.Call):
        name = (source.names.resolve(call.func, place.scope) or "").replace("tensorflow.compat.v1.", "tensorflow.")
        positions = _SIZE_CALLS.get(name, ())
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SIZE_METHODS and name not in _SIZE_CALLS:
            positions = None
        for index, argument in enumerate(call.args):
            if positions is None or index in positions:
                yield argument, place
        for keyword in call.keywords:
            if keyword.arg in _SIZE_KEYWORDS.split():
                yield keyword.value, place
    for node, place in source.names.nodes(ast.Subscript):
        yield node.slice, place


def _parts(expression: ast.expr, scope: Scope, seen: frozenset[str]) -> Iterator[ast.expr]:
    """Yields the expressions that give a size: elements of a shape, bounds of a slice, and values assigned to a name."""
    if isinstance(expression, (ast.Tuple, ast.List)):
        for element in expression.elts:
            yield from _parts(element, scope, seen)
    elif isinstance(expression, ast.Slice):
        for bound in (expression.lower, expression.upper, expression.step):
            if bound is not None:
                yield from _parts(bound, scope, seen)
    elif isinstance(expression, ast.BinOp):
        yield expression
        if not isinstance(expression.op, ast.Div):
            yield from _parts(expression.left, scope, seen)
            yield from _parts(expression.right, scope, seen)
    elif isinstance(expression, ast.Name) and expression.id not in seen:
        for value in _assigned(expression.id, scope):
            yield from _parts(value, scope, seen | {expression.id})


def _is_whole(node: ast.expr, scope: Scope, source: Source, depth: int) -> bool:
    """Returns True if an expression is visibly a whole number in Python 2."""
    if depth > 6:
        return False
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow):
        return _is_whole(node.left, scope, source, depth + 1) and _is_whole(node.right, scope, source, depth + 1)
    if isinstance(node, ast.UnaryOp):
        return _is_whole(node.operand, scope, source, depth + 1)
    if isinstance(node, ast.Call):
        return source.names.resolve(node.func, scope) in _WHOLE_CALLS
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Name):
        values = _assigned(node.id, scope)
        return bool(values) and all(_is_whole(value, scope, source, depth + 1) for value in values)
    return False


def _assigned(name: str, scope: Scope) -> list[ast.expr]:
    """Returns the values assigned to a name; none if the name is also bound in another way."""
    home = scope.find(name)
    values = [binding.value for binding in home.bindings.get(name, ())] if home else []
    return [value for value in values if value is not None] if all(value is not None for value in values) else []
