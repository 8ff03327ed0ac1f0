"""Modules that TensorFlow 1's build generated: wrappers of compiled operations, and protocol buffers."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.legacy.removed_names import old_protobuf
from estimator_bridge.legacy.upstream_contrib.operations import OPERATIONS


def is_wrapper(source: str) -> bool:
    """True for a module of generated wrappers of operations."""
    return "_op_def_library.OpDefLibrary" in source or "op_def_library.OpDefLibrary" in source


def fill_wrapper(module: types.ModuleType, source: str) -> None:
    """Gives a module its operations: TensorFlow's own kernel, our graph of operations, or a function that refuses.

    Args:
        module: Module to fill.
        source: Its file's text.
    """
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found = re.search(r'_apply_op_helper\(\s*"(\w+)"', ast.get_source_segment(source, node) or "")
            if found:
                function = _operation(found[1], [argument.arg for argument in node.args.args], module.__name__)
                for name in (node.name, found[1], f"_{node.name}"):
                    setattr(module, name, function)
    vars(module).setdefault("LIB_HANDLE", None)


def _operation(name: str, parameters: list[str], module: str) -> Callable[..., Any]:
    import tensorflow as tf

    if name in OPERATIONS:
        return OPERATIONS[name]
    raw = getattr(tf.raw_ops, name, None)
    if raw is not None:
        return lambda *args, **kwargs: raw(**dict(zip(parameters, args, strict=False)), **kwargs)

    def refuse(*args: object, **kwargs: object) -> Any:
        raise NotSupportedError(
            f"The operation {name} of {module.replace('tensorflow.contrib', 'tf.contrib')} is compiled code of TensorFlow 1.",
            expected="an operation that TensorFlow 2 has, or that can be composed of others",
            received=f"{name} at {_script_line()}",
            fix="Replace the call, or run this part on TensorFlow 1.15.",
        )

    return refuse


def _script_line() -> str:
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("tensorflow"):
        frame = frame.f_back
    return f"{inspect.getfile(frame)}:{frame.f_lineno}"


def fill_protobuf(module: types.ModuleType, source: str, imports: Callable[[ast.stmt], ast.stmt]) -> None:
    """Builds the messages of an old generated module from its serialized descriptor.

    Args:
        module: Module to fill.
        source: Its file's text.
        imports: Mends an import statement.
    """
    tree = ast.parse(source)
    for node in old_protobuf.message_imports(tree):
        exec(compile(ast.Module([imports(node)], []), "imports", "exec"), vars(module))  # noqa: S102 -- the import itself
    old_protobuf.build_messages(old_protobuf.serialized(tree), vars(module))
