"""Layers of ``tf.layers`` that Keras makes alike: objects, and all that a script's own classes of Keras make."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from estimator_bridge.compat.source.fixers.model.layers import EQUAL, FUNCTIONS, LAYERS
from estimator_bridge.compat.source.fixers.script import Script, arguments, code, nodes, parsed

_LAYERS = "tensorflow.layers."
_BASES = re.compile(r"(tensorflow\.(python\.)?)?keras\.(Model|models\.Model|layers\.Layer|engine\.training\.Model)$")
_WITH_AVERAGES = "BatchNormalization"
_IN_LAYERS = re.compile(r"tensorflow\.(python\.)?keras\.layers\.\w+")
_WITHOUT_WEIGHTS = ("flatten", "dropout", "max_pooling", "average_pooling")
"""Functions that make no variables: a layer in each call does the same."""
_OF_TENSORFLOW = frozenset({"reuse", "_reuse", "_scope"})
_MOST = 2  # arguments whose places Keras shares


_HARD = {"recurrent_activation": '"hard_sigmoid"'}
DEFAULTS = {
    "LSTM": _HARD,
    "LSTMCell": _HARD,
    "GRU": {**_HARD, "reset_after": "False"},
    "GRUCell": {**_HARD, "reset_after": "False"},
    "Embedding": {"dtype": '"float32"'},
}
"""Layers of Keras in TensorFlow 1, and the arguments whose defaults are others today; an Embedding had floats for whole numbers, too."""
_PLACES = {"recurrent_activation": 3}


def with_old_defaults(name: str, call: cst.Call) -> cst.Call:
    """Returns a call of a layer of Keras with the arguments whose defaults have changed since TensorFlow 1.

    Args:
        name: Name of what is called.
        call: The call.

    Example:
        >>> code(with_old_defaults("tensorflow.keras.layers.LSTM", parsed("LSTM(8)")))
        'LSTM(8, recurrent_activation="hard_sigmoid")'
    """
    defaults = DEFAULTS.get(name.rpartition(".")[2], {}) if _IN_LAYERS.fullmatch(name) else {}
    given = {one.keyword.value for one in call.args if one.keyword is not None}
    places = sum(one.keyword is None for one in call.args)
    if any(one.star for one in call.args):
        return call
    more = {key: value for key, value in defaults.items() if key not in given and places < _PLACES.get(key, 99)}
    words = (cst.Arg(parsed(value), cst.Name(key), equal=EQUAL) for key, value in more.items())
    return call.with_changes(args=[*call.args, *words]) if more else call


def layers_of_keras(script: Script, in_functions: bool) -> Iterator[cst.Call]:
    """Yields the calls of ``tf.layers`` that mean the same as calls of Keras, and are in classes of Keras or make objects in functions.

    A class in which one does not has none of them.

    Args:
        script: Script.
        in_functions: True to yield those in functions, too.
    """
    for owner in nodes(script.module, cst.ClassDef):
        assert isinstance(owner, cst.ClassDef)
        calls = [one for one in nodes(owner, cst.Call) if isinstance(one, cst.Call)]
        found = [one for one in calls if script.called(one).startswith(_LAYERS)]
        is_keras = any(_BASES.match(script.name(base.value)) for base in owner.bases)
        if is_keras and all(_has_twin(script, one) for one in found) and _says_if_it_drops(script, owner, calls):
            yield from found
    inside = {one for owner in nodes(script.module, cst.ClassDef) for one in nodes(owner, cst.Call)}
    functions = nodes(script.module, cst.FunctionDef) if in_functions else ()
    for one in dict.fromkeys(each for function in functions for each in nodes(function, cst.Assign, cst.Return)):
        made = one.value if isinstance(one, cst.Assign | cst.Return) else None
        name = script.called(made).removeprefix(_LAYERS)
        if isinstance(made, cst.Call) and made not in inside and name in FUNCTIONS and _has_twin(script, made):
            yield made


def as_keras(script: Script, old: cst.Call, new: cst.Call) -> cst.BaseExpression:
    """Returns the call of Keras for one that ``layers_of_keras`` yields.

    Args:
        script: Script around the call.
        old: Call as it is in the script.
        new: The same call with converted arguments.
    """
    name = script.called(old).removeprefix(_LAYERS)
    row = LAYERS.get(f"layers.{name}")
    if row is None:
        return new.with_changes(func=parsed(f"tf.keras.layers.{name}"))
    given = {key: code(value) for key, value in (arguments(new, row[1]) or {}).items()}
    inputs = [given.pop("inputs"), *([f"training={given.pop('training', 'False')}"] if name == "dropout" else [])]
    made = ", ".join(f"{key}={value}" for key, value in ({"rate": "0.5"} | given if name == "dropout" else given).items())
    return parsed(f"tf.keras.layers.{row[0]}({made})({', '.join(inputs)})")


def _has_twin(script: Script, call: cst.Call) -> bool:
    name = script.called(call).removeprefix(_LAYERS)
    row = LAYERS.get(f"layers.{name}")
    keywords = {one.keyword.value for one in call.args if one.keyword is not None}
    if keywords & _OF_TENSORFLOW or any(one.star for one in call.args):
        return False
    if row is not None:
        return name.startswith(_WITHOUT_WEIGHTS) and "inputs" in (arguments(call, row[1]) or {})
    places = sum(one.keyword is None for one in call.args)
    return name in FUNCTIONS and name != _WITH_AVERAGES and places <= _MOST


def _says_if_it_drops(script: Script, owner: cst.ClassDef, calls: list[cst.Call]) -> bool:
    """Returns True if each call of a dropout says if it trains: what is not told to does not in TensorFlow 1."""
    made = {
        code(one.targets[0].target)
        for one in nodes(owner, cst.Assign)
        if isinstance(one, cst.Assign) and script.called(one.value) == f"{_LAYERS}Dropout"
    }
    dropping = [one for one in calls if code(one.func) in made]
    return all(len(one.args) > 1 for one in dropping)
