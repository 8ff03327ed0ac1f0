"""Calls that ask for what all layers made, such as the trained variables: outside of a graph, only a method of the model knows it."""

from __future__ import annotations

import re

import libcst as cst

from estimator_bridge.compat.source.fixers.model.updates import STEPS
from estimator_bridge.compat.source.fixers.script import Script, arguments, code

_TRAINED = "self.trainable_variables"
COUNTED = "self.optimizer.iterations"
OF_WHOLE_MODEL = {
    **dict.fromkeys(STEPS, COUNTED),
    "tensorflow.trainable_variables": _TRAINED,
    "tensorflow.losses.get_regularization_loss": "tf.add_n(self.losses)",
    "tensorflow.losses.get_regularization_losses": "self.losses",
    "tensorflow.GraphKeys.REGULARIZATION_LOSSES": "self.losses",
    "tensorflow.GraphKeys.TRAINABLE_VARIABLES": _TRAINED,
}
"""Calls and collections that have what all layers made, or the count of steps, and what a method of the model asks."""
_PLAIN_SCOPE = re.compile(r"[\w/ -]*")


def of_whole_model(script: Script, node: cst.CSTNode) -> str:
    """Returns what a call that asks for what all layers made is in a method of the model; empty for all else."""
    name = script.called(node)
    if name == "tensorflow.get_collection" and isinstance(node, cst.Call) and len(node.args) == 1:
        name = script.name(node.args[0].value)
    whole = OF_WHOLE_MODEL.get(name, "")
    scope = asked_scope(script, node) if whole == _TRAINED else None
    is_plain = not isinstance(scope, cst.SimpleString) or _PLAIN_SCOPE.fullmatch(str(scope.evaluated_value))
    if scope is not None and is_plain:
        return f"[one for one in {_TRAINED} if one.name.startswith({code(scope)})]"
    return whole


def asked_scope(script: Script, node: cst.CSTNode) -> cst.BaseExpression | None:
    """Returns the scope of the variables or penalties that a call asks for; None for all of them, and for other calls."""
    name = script.called(node)
    parameters = ("key", "scope") if name == "tensorflow.get_collection" else ("scope",)
    given = (
        arguments(node, parameters) if isinstance(node, cst.Call) and (name in OF_WHOLE_MODEL or len(parameters) > 1) else None
    )
    return None if given is None or code(given.get("scope", cst.Name("None"))) == "None" else given["scope"]
