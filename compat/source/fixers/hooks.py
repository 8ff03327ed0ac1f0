"""Hooks of a script that neither read tensors nor use the session: they become callbacks of Keras."""

from __future__ import annotations

import libcst as cst

from estimator_bridge.compat.source.fixers.model.flow import reads_and_writes
from estimator_bridge.compat.source.fixers.script import Script, code, nodes

HOOK = "tensorflow.train.SessionRunHook"
_METHODS = {
    "begin": ("on_train_begin", 0, "logs=None"),
    "after_create_session": ("on_train_begin", 2, "logs=None"),
    "before_run": ("on_train_batch_begin", 1, "batch, logs=None"),
    "after_run": ("on_train_batch_end", 2, "batch, logs=None"),
    "end": ("on_train_end", 1, "logs=None"),
}
"""Method of a hook: that of a callback, the number of its arguments, and those of the callback's."""


def plain_hooks(script: Script) -> set[str]:
    """Returns the names of the script's classes of hooks that can be callbacks."""
    classes = (one for one in script.module.body if isinstance(one, cst.ClassDef))
    return {one.name.value for one in classes if _is_plain(script, one)}


def _is_plain(script: Script, node: cst.ClassDef) -> bool:
    if [script.name(base.value) for base in node.bases] != [HOOK]:
        return False
    methods = {one.name.value: one for one in node.body.body if isinstance(one, cst.FunctionDef)}
    used = {script.name(part) for part in nodes(node.body, cst.Attribute)}
    if any(name.startswith("tensorflow.") and not name.startswith("tensorflow.logging") for name in used):
        return False
    return {"begin", "after_create_session"} - methods.keys() != set() and all(
        name not in _METHODS or _asks_nothing(one, _METHODS[name][1]) for name, one in methods.items()
    )


def _asks_nothing(method: cst.FunctionDef, count: int) -> bool:
    """Returns True for a method that neither reads its arguments nor returns tensors that it wants."""
    names = [one.name.value for one in method.params.params]
    wants = any(isinstance(one, cst.Return) and one.value is not None for one in nodes(method.body, cst.Return))
    return len(names) == count + 1 and not wants and not reads_and_writes(method.body)[0] & {*names[1:]}


def as_callback(node: cst.ClassDef) -> cst.ClassDef:
    """Returns the callback that a plain hook becomes.

    Args:
        node: Class of the hook.

    Example:
        >>> lines = "class Hook(tf.train.SessionRunHook):", "    def end(self, session): print(1)"
        >>> code(as_callback(cst.parse_statement(chr(10).join(lines)))).splitlines()
        ['class Hook(tf_keras.callbacks.Callback):', '    def on_train_end(self, logs=None): print(1)']
    """
    changed = [_method(one) if isinstance(one, cst.FunctionDef) else one for one in node.body.body]
    return node.with_changes(
        bases=[cst.Arg(cst.parse_expression("tf_keras.callbacks.Callback"))], body=node.body.with_changes(body=changed)
    )


def _method(method: cst.FunctionDef) -> cst.FunctionDef:
    name = method.name.value
    if name == "__init__" and "super(" not in code(method.body) and isinstance(method.body, cst.IndentedBlock):
        body = [cst.parse_statement("super().__init__()"), *method.body.body]
        return method.with_changes(body=method.body.with_changes(body=body))
    if name not in _METHODS:
        return method
    new, _, parameters = _METHODS[name]
    header = cst.parse_statement(f"def {new}(self, {parameters}): pass")
    assert isinstance(header, cst.FunctionDef)
    return method.with_changes(name=header.name, params=header.params)
