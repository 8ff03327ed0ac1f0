"""Functions of contrib that make a table or several layers at once, as the statements that do the same."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.script import Arguments, Script, code, nodes, simple_name

_CONTRIB = "tensorflow.contrib.layers."
_TABLE = ("ids", "vocab_size", "embed_dim", "unique", "initializer", "regularizer", "trainable", "scope", "reuse")
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "embed_sequence": _TABLE,
    "repeat": ("inputs", "repetitions", "layer"),
    "stack": ("inputs", "layer", "stack_args"),
}
"""Functions and their parameters; behind those of the last two come arguments of the layers."""
_SCOPES = {"embed_sequence": "EmbedSequence", "repeat": "Repeat", "stack": "Stack"}
"""Names of their scopes if they are given none."""
_NAMES = {"conv2d": "convolution2d", "conv2d_transpose": "convolution2d_transpose"}
"""Functions with another name of their own, after which they name layers."""


def as_block(script: Script, old: cst.SimpleStatementLine, new: cst.SimpleStatementLine) -> cst.BaseStatement | None:
    r"""Returns a scope with the statements that an assignment of ``embed_sequence``, ``repeat`` or ``stack`` stands for; None for all else.

    Args:
        script: Script around the assignment.
        old: Assignment as it is in the script.
        new: The same with converted parts.

    Example:
        >>> text = "import tensorflow as tf\nnet = tf.contrib.layers.repeat(x, 2, tf.contrib.layers.conv2d, 8, 3, scope='conv')"
        >>> script = Script(text)
        >>> line = script.module.body[1]
        >>> print(code(as_block(script, line, line)).strip())
        with tf.variable_scope('conv', "Repeat"):
            net = x
            for layer_number in range(2):
                net = tf.contrib.layers.conv2d(net, 8, 3, scope='conv' + "_%d" % (layer_number + 1))
    """
    before, only = old.body[0], new.body[0]
    if len(old.body) != 1 or not isinstance(before, cst.Assign) or not isinstance(only, cst.Assign) or len(only.targets) != 1:
        return None
    target, name = simple_name(only.targets[0].target), script.called(before.value).removeprefix(_CONTRIB)
    if name not in PARAMETERS or not target:
        return None
    given, further = _arguments(only.value, PARAMETERS[name])
    layer = _arguments(before.value, PARAMETERS[name])[0].get("layer")
    made = script.name(layer) if layer is not None else ""
    taken = {simple_name(one) for one in nodes(script.module, cst.Name)}
    number, units = (
        next(one for count in itertools.count() if (one := f"{word}{'_' * count}") not in taken)
        for word in ("layer_number", "layer_units")
    )
    lines = _table(given, target) if name == "embed_sequence" else _layers(made, given, further, target, (number, units))
    if lines is None:
        return None
    first = f'with tf.variable_scope({_text(given, "scope")}, "{_SCOPES[name]}"):'
    block = cst.ensure_type(cst.parse_statement("\n    ".join([first, *lines])), cst.With)
    above = {one.comment for one in new.leading_lines}
    others = [
        cst.EmptyLine(comment=one) for one in nodes(new, cst.Comment) if isinstance(one, cst.Comment) and one not in above
    ]
    return block.with_changes(leading_lines=[*new.leading_lines, *others])


def _arguments(value: cst.BaseExpression, parameters: Sequence[str]) -> tuple[Arguments, list[cst.BaseExpression]]:
    """Returns the arguments of a call by name, and those behind its parameters; nothing if there are some with a star."""
    call = cst.ensure_type(value, cst.Call)
    if any(one.star for one in call.args):
        return {}, []
    by_place = [one.value for one in call.args if one.keyword is None]
    named = {one.keyword.value: one.value for one in call.args if one.keyword is not None}
    return {**dict(zip(parameters, by_place, strict=False)), **named}, by_place[len(parameters) :]


def _text(given: Arguments, name: str) -> str:
    return code(given[name]) if name in given else "None"


def _table(given: Arguments, target: str) -> list[str] | None:
    """Returns the lines of ``embed_sequence``."""
    if not {*_TABLE[:3]} <= given.keys() <= {*_TABLE} - {"unique", "reuse"}:
        return None
    more = "".join(f", {name}={code(given[name])}" for name in _TABLE[4:7] if name in given)
    table = f'tf.get_variable("embeddings", [{_text(given, "vocab_size")}, {_text(given, "embed_dim")}]{more})'
    return [f"{target} = tf.nn.embedding_lookup({table}, {_text(given, 'ids')})"]


def _layers(
    made: str, given: Arguments, further: Sequence[cst.BaseExpression], target: str, names: tuple[str, str]
) -> list[str] | None:
    """Returns the lines of ``repeat``, and those of ``stack`` for layers that take a number of units alone."""
    name, inputs = made.removeprefix(_CONTRIB), _text(given, "inputs")
    is_stack = "stack_args" in given
    later = [*further, *(value for key, value in given.items() if key != "inputs")]  # in the loop, where the target has changed
    reads = {simple_name(one) for value in later for one in nodes(value, cst.Name)}
    sizes = given.get("stack_args")
    if isinstance(sizes, cst.List | cst.Tuple) and any(isinstance(one.value, cst.List | cst.Tuple) for one in sizes.elements):
        return None
    number, units = names
    if name == made or "inputs" not in given or target in reads:
        return None
    if (is_stack and (name != "fully_connected" or further)) or is_stack is ("repetitions" in given):
        return None
    first = _text(given, "scope") if "scope" in given else f'"{_NAMES.get(name, name)}"'
    own = {"inputs", "repetitions", "layer", "stack_args", "scope"}
    passed = [target, *([units] if is_stack else map(code, further))]
    passed += [f"{key}={code(value)}" for key, value in given.items() if key not in own]
    passed.append(f'scope={first} + "_%d" % ({number} + 1)')
    times = f"{number} in range({_text(given, 'repetitions')})"
    turns = f"{number}, {units} in enumerate({_text(given, 'stack_args')})" if is_stack else times
    start = [f"{target} = {inputs}"] if target != inputs else []
    return [*start, f"for {turns}:", f"    {target} = {_text(given, 'layer')}({', '.join(passed)})"]
