"""``normalizer_fn`` of contrib's layers: batch norm and the activation behind the layer, as calls of their own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.model.layers import LAYERS
from estimator_bridge.compat.source.fixers.script import Script, arguments, code, nodes, parsed, simple_name

_NORMALIZERS = ("tf.contrib.layers.batch_norm", "tf.contrib.slim.batch_norm")
_ACTIVATION = re.compile(r"None|tf\.(nn|math|keras\.activations)\.\w+|tf\.(identity|sigmoid|tanh)")
_OWN = ("activation_fn", "normalizer_fn", "normalizer_params", "biases_initializer", "biases_regularizer")
"""Arguments of a layer that its convolution or multiplication does not get."""


def normalized(script: Script, old: cst.Call, new: cst.Call, of_norms: Sequence[cst.Arg] = ()) -> cst.Call | None:
    r"""Returns the calls that a layer of contrib with ``normalizer_fn=batch_norm`` stands for; None for all else.

    A layer without a scope stays, for only contrib knows the names of its variables.

    Args:
        script: Script around the call.
        old: Call as it is in the script.
        new: The same call with converted arguments, those of ``arg_scope`` too.
        of_norms: Arguments that ``arg_scope`` gives batch norm here.

    Example:
        >>> text = "tf.contrib.layers.conv2d(x, 8, 3, normalizer_fn=tf.contrib.layers.batch_norm, scope='a')"
        >>> script = Script(f"import tensorflow as tf\n{text}")
        >>> (call,) = (one for one in nodes(script.module, cst.Call))
        >>> code(normalized(script, call, call)).replace("tf.contrib.layers.", "")
        "tf.nn.relu(batch_norm(conv2d(x, 8, 3, scope='a', activation_fn=None, biases_initializer=None), scope='a/BatchNorm'))"
    """
    parameters = LAYERS.get(script.called(old).removeprefix("tensorflow."), ("", ()))[1]
    given = arguments(new, parameters) if "normalizer_fn" in parameters else None
    if given is None or "scope" not in given or code(given.get("normalizer_fn", new)) not in _NORMALIZERS or "#" in code(new):
        return None
    params = _params(script, old, given.get("normalizer_params"))
    activation = code(given.get("activation_fn", parsed("tf.nn.relu")))
    if params is None or not _ACTIVATION.fullmatch(activation):  # what has another name may be None
        return None
    scopes = {one.keyword.value: code(one.value) for one in of_norms if one.keyword is not None}
    inherited = {"reuse": code(given["reuse"])} if "reuse" in given else {}
    params = inherited | scopes | params
    if "activation_fn" in params or "scope" in params:
        return None
    if {*parameters[: sum(one.keyword is None for one in new.args)]} & {*_OWN}:
        return None
    kept = [one for one in new.args if one.keyword is None or one.keyword.value not in _OWN]
    layer = ", ".join(code(one.with_changes(comma=cst.MaybeSentinel.DEFAULT)).strip() for one in kept)
    layer = f"{code(new.func)}({layer}, activation_fn=None, biases_initializer=None)"
    more = "".join(f", {name}={value}" for name, value in params.items())
    whole = f"tf.contrib.layers.batch_norm({layer}{more}, scope={_below(given['scope'])}"
    ends = "))" if activation != "None" else ")"
    start = f"{activation}(" if activation != "None" else ""
    gone = "\n" * max(code(new).count("\n") - f"{start}{whole}".count("\n"), 0)
    return cst.ensure_type(parsed(f"{start}{whole}{gone}{ends}"), cst.Call)


def _below(scope: cst.BaseExpression) -> str:
    if isinstance(scope, cst.SimpleString):
        return f"{scope.value[:-1]}/BatchNorm{scope.value[-1]}"
    return (
        f'{code(scope)} + "/BatchNorm"'
        if isinstance(scope, cst.Name | cst.FormattedString | cst.Call)
        else f'({code(scope)}) + "/BatchNorm"'
    )


def _params(script: Script, call: cst.Call, value: cst.BaseExpression | None) -> dict[str, str] | None:
    """Returns the arguments of batch norm that are written out in a dict, by their names; None if they are not."""
    if value is None or code(value) == "None":
        return {}
    if isinstance(value, cst.Name):
        value = _only_value(script, call, value.value)
    if isinstance(value, cst.Dict):
        keys = [one.key for one in value.elements if isinstance(one, cst.DictElement)]
        names = [str(one.evaluated_value) for one in keys if isinstance(one, cst.SimpleString)]
        values = [code(one.value) for one in value.elements]
        return dict(zip(names, values, strict=True)) if len(names) == len(value.elements) else None
    if (
        isinstance(value, cst.Call)
        and simple_name(value.func) == "dict"
        and all(one.keyword and not one.star for one in value.args)
    ):
        return {one.keyword.value: code(one.value) for one in value.args if one.keyword is not None}
    return None


def _only_value(script: Script, call: cst.Call, name: str) -> cst.BaseExpression | None:
    """Returns the dict that a name has wherever it is read, as ``normalizer_params`` alone; its parts mean the same at the call."""
    functions = [one for one in nodes(script.module, cst.FunctionDef) if call in {*nodes(one, cst.Call)}]
    around = functions[-1] if functions else script.module
    assigns = [one for one in nodes(script.module, cst.Assign) if isinstance(one, cst.Assign)]
    made = [one for one in assigns if len(one.targets) == 1 and simple_name(one.targets[0].target) == name]
    given = [
        one.value
        for one in nodes(script.module, cst.Arg)
        if isinstance(one, cst.Arg) and one.keyword is not None and one.keyword.value == "normalizer_params"
    ]
    named = [one for one in nodes(script.module, cst.Name) if simple_name(one) == name]
    if len(made) != 1 or set(named) - {made[0].targets[0].target, *given}:
        return None
    kinds = cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.AsName, cst.NamedExpr, cst.Param
    targets = [one.name if isinstance(one, cst.AsName | cst.Param) else one.target for one in nodes(around, *kinds)]  # type: ignore[attr-defined]
    written = Counter(simple_name(each) for each in {each for one in targets for each in (one, *nodes(one, cst.Name))})
    read = {simple_name(one) for one in nodes(made[0].value, cst.Name)}
    is_constant = not read - {"True", "False", "None"}
    is_here = made[0] in {*nodes(around, cst.Assign)} and all(written[one] <= 1 for one in read)
    return made[0].value if is_here or is_constant else None
