"""Model functions for TPUs, and for the towers of contrib, as those of an Estimator, which compute the same on one other device."""

from __future__ import annotations

import ast
import collections
import io
import re
import tokenize
from collections.abc import Iterable

import libcst as cst

from estimator_bridge.compat.source.fixers.script import TPU, Script, code, nodes, simple_name

_SPEC = f"{TPU}TPUEstimatorSpec"
_AS_PLAIN = "as_estimator_spec"
TOWERS = ("tensorflow.contrib.estimator.TowerOptimizer", "tensorflow.contrib.estimator.replicate_model_fn")
"""Calls that spread a model function over GPUs; their first argument is that for one device."""
_NEWLINE = cst.ParenthesizedWhitespace()


def without_tpu(script: Script) -> str:
    """Returns the source in which EstimatorSpecs and optimizers for TPUs are plain ones, each in its line.

    Args:
        script: Script.

    Example:
        >>> without_tpu(Script("import tensorflow as tf; s = tf.contrib.tpu.TPUEstimatorSpec(m, eval_metrics=(f, [a]))"))
        'import tensorflow as tf; s = tf.estimator.EstimatorSpec(m, eval_metric_ops=f(a))'
    """
    specs = [node for node in nodes(script.module, cst.Call) if script.called(node) == _SPEC and isinstance(node, cst.Call)]
    asked = {
        simple_name(one.value) for node in specs for one in node.args if one.keyword and one.keyword.value == "eval_metrics"
    }
    text: str = script.module.visit(_WithoutTpu(script, asked - {""})).code
    if text == script.module.code:
        return text
    return _without_bodies(_without_choices(text, choices_for_tpu(script.module.code)), host_calls(text))


def choices_for_tpu(text: str) -> set[int]:
    """Returns the lines of tests that end with an EstimatorSpec for TPUs, refuse them, or make a Scaffold for them.

    Args:
        text: Source, in Python 3.
    """
    found: set[int] = set()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for block in _blocks(function) if "EstimatorSpec" in ast.unparse(function) else ():
            found |= {one.lineno for place, one in enumerate(block) if _is_for_tpu(one, block[place + 1 :])}
        found |= {one.lineno for one in ast.walk(function) if isinstance(one, ast.If) and _chooses_scaffold(one)}
    return found


def host_calls(text: str) -> list[ast.FunctionDef]:
    """Returns the functions that only a TPU's host calls: nothing but the first element of a pair named ``host_call`` names them.

    Args:
        text: Source, in Python 3.
    """
    tree = ast.parse(text)
    pairs = [(one.arg, one.value) for one in ast.walk(tree) if isinstance(one, ast.keyword)]
    pairs += [(ast.unparse(one.targets[0]), one.value) for one in ast.walk(tree) if isinstance(one, ast.Assign)]
    named = [
        value.elts[0] for name, value in pairs if name == "host_call" and isinstance(value, ast.Tuple) and len(value.elts) == 2
    ]
    loads = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    within = {part for one in functions for part in ast.walk(one) if part is not one}  # what others cannot import
    defined = collections.Counter(one.name for one in functions)
    asked = {one.id for one in loads if one not in named} | {
        one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)
    }
    hosts = {one.id for one in named if isinstance(one, ast.Name)} - asked
    return [
        one
        for one in functions
        if one.name in hosts and defined[one.name] == 1 and one in within and _begins_line(one.body[0], text)
    ]


def _is_for_tpu(node: ast.stmt, following: list[ast.stmt]) -> bool:
    """Returns True for a test of a TPU that ends with an EstimatorSpec for it, or refuses it, where others end with a plain spec."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Name | ast.Attribute | ast.Subscript):
        return False
    if not _asks_tpu(node.test):
        return False
    otherwise = node.orelse or following
    name, made = _spec_of(node.body)
    texts = [ast.unparse(one[0]).removesuffix(f".{_AS_PLAIN}()") for one in (node.body, otherwise) if one]
    refuses = isinstance(node.body[-1], ast.Raise) and not node.orelse
    is_same = len(node.body) == 1 and len(set(texts)) == 1 and len(texts) > 1
    return refuses or is_same or (made == "TPUEstimatorSpec" and _spec_of(otherwise) == (name, "EstimatorSpec"))


def _blocks(function: ast.FunctionDef) -> list[list[ast.stmt]]:
    """Returns the bodies of a function and of the statements in it."""
    fields = (getattr(one, name, None) for one in ast.walk(function) for name in ("body", "orelse"))
    return [one for one in fields if isinstance(one, list)]


def _chooses_scaffold(node: ast.If) -> bool:
    """Returns True for a test of a TPU whose branch defines a function that makes a Scaffold, and has another one."""
    functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    made = {
        ast.unparse(one.func).rpartition(".")[2]
        for function in functions
        for one in ast.walk(function)
        if isinstance(one, ast.Call)
    }
    asks = any(_asks_tpu(one) for one in ast.walk(node.test) if isinstance(one, ast.Name | ast.Attribute | ast.Subscript))
    return asks and "Scaffold" in made and bool(node.orelse)


def _asks_tpu(test: ast.expr) -> bool:
    """Returns True for a name such as ``FLAGS.use_tpu``, not for one that says the contrary."""
    words = re.findall(r"\w+", ast.unparse(test).lower())
    parts = words[-1].split("_") if words else []
    return not {"tpu", "tpus"}.isdisjoint(parts) and {"no", "not", "non", "without", "disable"}.isdisjoint(parts)


def _spec_of(body: list[ast.stmt]) -> tuple[str, str]:
    """Returns the name that statements give a call at their end, empty if they return it, and the class that is called."""
    last = body[-1] if body and isinstance(body[-1], ast.Return | ast.Assign) else None
    if last is None or not isinstance(last.value, ast.Call):
        return "", ""
    return ast.unparse(last.targets[0]) if isinstance(last, ast.Assign) else "", ast.unparse(last.value.func).rpartition(".")[2]


def _without_choices(text: str, for_tpu: set[int]) -> str:
    """Returns the source without tests that decide nothing any more: both branches are equal, or a name gets its own value.

    All other lines keep their numbers, and comments stay.

    Args:
        text: Source.
        for_tpu: Lines of tests whose branch is for TPUs alone.
    """
    lines, comments = text.split("\n"), _comments(text)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.If) or any(isinstance(one, ast.Call) for one in ast.walk(node.test)):
            continue
        inside = range(node.lineno - 1, node.end_lineno or node.lineno)
        strings = (one for one in ast.walk(node) if isinstance(one, ast.Constant | ast.JoinedStr))
        is_equal = [ast.dump(one) for one in node.body] == [ast.dump(one) for one in node.orelse]
        is_equal = is_equal and _begins_line(node, text) and _begins_line(node.orelse[0], text)
        of_tpu = node.lineno in for_tpu and _begins_line(node, text)
        goes = of_tpu and not node.orelse
        has_branch = is_equal or (of_tpu and bool(node.orelse) and _begins_line(node.orelse[0], text))
        many_lines = any(one.lineno != one.end_lineno for one in strings)
        if not goes and (many_lines or not (has_branch or _keeps_names(node))):
            continue
        kept = range(node.orelse[0].lineno - 1, inside.stop) if has_branch else range(0)
        indent = node.orelse[0].col_offset - node.col_offset if has_branch else 0
        for number in inside:
            if number in kept:
                lines[number] = lines[number][indent:] if not lines[number][:indent].strip() else lines[number]
            else:
                lines[number] = comments.get(number + 1, "")
    changed = "\n".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError:  # a block had nothing else
        return text
    return changed


def _comments(text: str) -> dict[int, str]:
    """Returns the comment of each line that has one, as far in as the line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        token.start[0]: " " * (len(token.line) - len(token.line.lstrip())) + token.string
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _without_bodies(text: str, functions: Iterable[ast.FunctionDef]) -> str:
    """Returns the source in which functions do nothing; docstrings, comments and the numbers of lines stay."""
    lines, comments = text.split("\n"), _comments(text)
    for one in functions:
        first = one.body[1:] if ast.get_docstring(one) is not None else one.body
        if first:
            inside = range(first[0].lineno, (one.end_lineno or first[0].lineno) + 1)
            gone = [comments.get(number, "") for number in inside]
            indent = lines[inside.start - 1][: first[0].col_offset]
            lines[inside.start - 1 : inside.stop - 1] = [
                f"{indent}return None{'  ' + gone[0].strip() if gone[0] else ''}",
                *gone[1:],
            ]
    return "\n".join(lines)


def _begins_line(node: ast.stmt, text: str) -> bool:
    """Returns False for an elif, whose branches belong to the if above it, and for what follows a colon."""
    line = text.split("\n")[node.lineno - 1]
    return not line[: node.col_offset].strip() and not line.lstrip().startswith("elif")


def _keeps_names(node: ast.If) -> bool:
    """Returns True for ``if ...: optimizer = optimizer``."""
    return not node.orelse and all(
        isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Name)
        and [ast.unparse(t) for t in one.targets] == [one.value.id]
        for one in node.body
    )


class _WithoutTpu(cst.CSTTransformer):
    """Changes the calls of a script.

    Args:
        script: Script.
        measured: Names of functions of metrics with their arguments.
    """

    def __init__(self, script: Script, measured: set[str]) -> None:
        super().__init__()
        self._script = script
        self._measured = measured

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        if simple_name(original_node.targets[0].target) in self._measured:
            return updated_node.with_changes(value=_called(updated_node.value))
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self._script.called(original_node)
        if name in (f"{TPU}CrossShardOptimizer", *TOWERS) and updated_node.args:
            return updated_node.args[0].value
        if not updated_node.args and isinstance(updated_node.func, cst.Attribute) and updated_node.func.attr.value == _AS_PLAIN:
            return updated_node.func.value
        root: cst.CSTNode = original_node.func
        while isinstance(root, cst.Attribute):
            root = root.value
        if name != _SPEC or self._script.name(root) != "tensorflow":
            return updated_node
        new = cst.parse_expression(f"{code(root)}.estimator.EstimatorSpec")
        return updated_node.with_changes(func=new, args=[_plain_argument(one) for one in updated_node.args])


def _plain_argument(argument: cst.Arg) -> cst.Arg:
    if argument.keyword is None or argument.keyword.value != "eval_metrics":
        return argument
    return argument.with_changes(keyword=cst.Name("eval_metric_ops"), value=_called(argument.value))


def _called(value: cst.BaseExpression) -> cst.BaseExpression:
    """Returns the call of a function with its arguments that a pair has; any other expression as it is."""
    function, given = (
        (one.value for one in value.elements) if isinstance(value, cst.Tuple) and len(value.elements) == 2 else (value, None)
    )
    if isinstance(given, cst.List | cst.Tuple):
        arguments = [cst.Arg(one.value, comma=one.comma) for one in given.elements]
    elif isinstance(given, cst.Dict) and all(
        isinstance(one, cst.DictElement) and isinstance(one.key, cst.SimpleString) for one in given.elements
    ):
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        pairs = [one for one in given.elements if isinstance(one, cst.DictElement)]
        arguments = [cst.Arg(one.value, cst.Name(code(one.key)[1:-1]), equal, comma=one.comma) for one in pairs]
    else:
        return value
    call = cst.Call(function, arguments)
    lost = code(value).count("\n") - code(call).count("\n")
    if arguments and lost > 0:  # lines keep their numbers
        space = _NEWLINE.with_changes(empty_lines=[cst.EmptyLine(indent=False)] * (lost - 1))
        call = call.with_changes(args=[*arguments[:-1], arguments[-1].with_changes(whitespace_after_arg=space)])
    return call
