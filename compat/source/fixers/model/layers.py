"""Functions of ``tf.layers`` as layers of Keras, which a model makes once and calls in each step."""

from __future__ import annotations

import re

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.script import Arguments, Script, arguments, code, nodes, parsed, simple_name

_WEIGHTS = (
    "kernel_initializer", "bias_initializer", "kernel_regularizer", "bias_regularizer", "activity_regularizer",
    "kernel_constraint", "bias_constraint", "trainable", "name", "reuse",
)  # fmt: skip
_POOL = ("inputs", "pool_size", "strides", "padding", "data_format", "name")
_CONV = (
    "inputs",
    "filters",
    "kernel_size",
    "strides",
    "padding",
    "data_format",
    "dilation_rate",
    "activation",
    "use_bias",
    *_WEIGHTS,
)
_TRANSPOSED = tuple(one for one in _CONV if one != "dilation_rate")
_SEPARABLE = (
    *_CONV[:7], "depth_multiplier", "activation", "use_bias", "depthwise_initializer", "pointwise_initializer", "bias_initializer",
    "depthwise_regularizer", "pointwise_regularizer", "bias_regularizer", "activity_regularizer", "depthwise_constraint",
    "pointwise_constraint", "bias_constraint", "trainable", "name", "reuse",
)  # fmt: skip
_NORM = (
    "inputs", "axis", "momentum", "epsilon", "center", "scale", "beta_initializer", "gamma_initializer", "moving_mean_initializer",
    "moving_variance_initializer", "beta_regularizer", "gamma_regularizer", "beta_constraint", "gamma_constraint", "training",
    "trainable", "name", "reuse", "fused",
)  # fmt: skip
_CONTRIB_WEIGHTS = (
    "activation_fn", "normalizer_fn", "normalizer_params", "weights_initializer", "weights_regularizer", "biases_initializer",
    "biases_regularizer", "reuse", "variables_collections", "outputs_collections", "trainable", "scope",
)  # fmt: skip
_CONTRIB_NORM = (
    "inputs", "decay", "center", "scale", "epsilon", "activation_fn", "param_initializers", "param_regularizers", "updates_collections",
    "is_training", "reuse", "variables_collections", "outputs_collections", "trainable", "batch_weights", "fused", "data_format",
    "zero_debias_moving_mean", "scope",
)  # fmt: skip
_CONTRIB_LAYER_NORM = (
    "inputs", "center", "scale", "activation_fn", "reuse", "variables_collections", "outputs_collections", "trainable", "begin_norm_axis",
    "begin_params_axis", "scope",
)  # fmt: skip
_CONTRIB_TRANSPOSED = ("inputs", "num_outputs", "kernel_size", "stride", "padding", "data_format", *_CONTRIB_WEIGHTS)
_CONTRIB_CONV = ("inputs", "num_outputs", "kernel_size", "stride", "padding", "data_format", "rate", *_CONTRIB_WEIGHTS)
LAYERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "layers.average_pooling1d": ("AveragePooling1D", _POOL),
    "layers.average_pooling2d": ("AveragePooling2D", _POOL),
    "layers.average_pooling3d": ("AveragePooling3D", _POOL),
    "layers.batch_normalization": ("BatchNormalization", _NORM),
    "layers.conv1d": ("Conv1D", _CONV),
    "layers.conv2d": ("Conv2D", _CONV),
    "layers.conv2d_transpose": ("Conv2DTranspose", _TRANSPOSED),
    "layers.conv3d": ("Conv3D", _CONV),
    "layers.conv3d_transpose": ("Conv3DTranspose", _TRANSPOSED),
    "layers.dense": ("Dense", ("inputs", "units", "activation", "use_bias", *_WEIGHTS)),
    "layers.dropout": ("Dropout", ("inputs", "rate", "noise_shape", "seed", "training", "name")),
    "contrib.layers.avg_pool2d": ("AveragePooling2D", ("inputs", "kernel_size", "stride", "padding")),
    "contrib.layers.batch_norm": ("FusedBatchNormalization", _CONTRIB_NORM),
    "contrib.layers.conv2d": ("Conv2D", _CONTRIB_CONV),
    "contrib.layers.conv2d_transpose": ("Conv2DTranspose", _CONTRIB_TRANSPOSED),
    "contrib.layers.convolution2d": ("Conv2D", _CONTRIB_CONV),
    "contrib.layers.convolution2d_transpose": ("Conv2DTranspose", _CONTRIB_TRANSPOSED),
    "contrib.layers.dropout": (
        "Dropout",
        ("inputs", "keep_prob", "noise_shape", "is_training", "outputs_collections", "scope", "seed"),
    ),
    "contrib.layers.flatten": ("Flatten", ("inputs", "outputs_collections", "scope")),
    "contrib.layers.fully_connected": ("Dense", ("inputs", "num_outputs", *_CONTRIB_WEIGHTS)),
    "contrib.layers.layer_norm": ("LayerNormalization", _CONTRIB_LAYER_NORM),
    "contrib.layers.max_pool2d": ("MaxPooling2D", ("inputs", "kernel_size", "stride", "padding")),
    "layers.flatten": ("Flatten", ("inputs", "name", "data_format")),
    "layers.max_pooling1d": ("MaxPooling1D", _POOL),
    "layers.max_pooling2d": ("MaxPooling2D", _POOL),
    "layers.max_pooling3d": ("MaxPooling3D", _POOL),
    "layers.separable_conv1d": ("SeparableConv1D", _SEPARABLE),
    "layers.separable_conv2d": ("SeparableConv2D", _SEPARABLE),
    "feature_column.input_layer": ("DenseFeatures", ("features", "feature_columns")),
}
"""Function below ``tf``: the class below ``tf_keras.layers``, and TensorFlow 1's parameters, which Keras names alike.

Keras has no ``reuse``: calls of one name share a layer, as they share variables in TensorFlow 1.
"""
_CONTRIB = {
    "activation_fn": "activation", "weights_initializer": "kernel_initializer", "weights_regularizer": "kernel_regularizer",
    "biases_initializer": "bias_initializer", "biases_regularizer": "bias_regularizer", "trainable": "trainable", "scope": "name",
    "stride": "strides", "padding": "padding", "inputs": "inputs", "reuse": "",
}  # fmt: skip
_POOLED = {**_CONTRIB, "kernel_size": "pool_size"}
_CONVOLVED = {**_CONTRIB, "num_outputs": "filters", "kernel_size": "kernel_size", "rate": "dilation_rate"}
_NORMED = {
    "inputs": "inputs", "decay": "momentum", "center": "center", "scale": "scale", "epsilon": "epsilon", "is_training": "training",
    "trainable": "trainable", "updates_collections": "", "fused": "fused", "scope": "name", "reuse": "",
}  # fmt: skip
_LAYER_NORMED = {
    "inputs": "inputs", "center": "center", "scale": "scale", "trainable": "trainable", "begin_norm_axis": "axis", "scope": "name",
    "reuse": "",
}  # fmt: skip
_DROPPED = {
    "inputs": "inputs", "keep_prob": "rate", "noise_shape": "noise_shape", "is_training": "training", "scope": "name", "seed": "seed",
}  # fmt: skip
_RENAMED: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "contrib.layers.avg_pool2d": ("AvgPool2D", _POOLED, {"strides": "2"}),
    "contrib.layers.batch_norm": ("BatchNorm", _NORMED, {"momentum": "0.999", "scale": "False"}),
    "contrib.layers.conv2d": ("Conv", _CONVOLVED, {"padding": '"same"', "activation": "tf.nn.relu"}),
    "contrib.layers.conv2d_transpose": ("Conv2d_transpose", _CONVOLVED, {"padding": '"same"', "activation": "tf.nn.relu"}),
    "contrib.layers.convolution2d": ("Conv", _CONVOLVED, {"padding": '"same"', "activation": "tf.nn.relu"}),
    "contrib.layers.convolution2d_transpose": (
        "Conv2d_transpose",
        _CONVOLVED,
        {"padding": '"same"', "activation": "tf.nn.relu"},
    ),
    "contrib.layers.dropout": ("Dropout", _DROPPED, {}),
    "contrib.layers.flatten": ("flatten", {"inputs": "inputs", "scope": "name"}, {}),
    "contrib.layers.fully_connected": ("fully_connected", {**_CONTRIB, "num_outputs": "units"}, {"activation": "tf.nn.relu"}),
    "contrib.layers.layer_norm": ("LayerNorm", _LAYER_NORMED, {"epsilon": "1e-12"}),
    "contrib.layers.max_pool2d": ("MaxPool2D", _POOLED, {"strides": "2"}),
    "feature_column.input_layer": ("input_layer", {"features": "inputs", "feature_columns": "feature_columns"}, {}),
}
"""Functions of contrib with the name that their layers have, what Keras calls their parameters, and defaults that Keras does not share."""
EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
FUSED_NORMS = ("FusedBatchNormalization", "fused_batch_normalization")
"""Layer and function of the support code for contrib's batch_norm, which keeps the unbiased variance for inputs of rank 2, too."""
VARIABLE, OF_NETWORK, NAME_SCOPE = "tensorflow.Variable", "variable_of_network", "open_name_scope"
LAYER_OF_NETWORK = "layer_of_network"
OWN_FUNCTIONS = {FUSED_NORMS[0]: FUSED_NORMS[1], "LayerNormalization": "contrib_layer_norm"}
"""Class of Keras, or of the support code: the function of the support code that computes the same below track_tf1_style_variables."""
FUNCTIONS = {row[0]: name.removeprefix("layers.") for name, row in LAYERS.items() if name.startswith("layers.")}
"""Class below ``tf.layers``: the function that makes such a layer and calls it."""
TRAINING = {"batch_normalization": "False", "dropout": "False", "batch_norm": "True"}
"""Functions whose layers are told if they train, and what they do if nothing is said."""
DEFAULTS = {"dropout": {"rate": "0.5"}}
"""Arguments that Keras needs where TensorFlow 1 has a default."""


def layer_function(name: str) -> str:
    """Returns the name below ``tf`` of a function that makes a layer; empty for all else."""
    below = name.removeprefix("tensorflow.")
    return below if below in LAYERS or (below.startswith(("layers.", "feature_column.linear_model")) and below != name) else ""


def is_contrib(name: str) -> bool:
    """Returns True for a function of contrib that makes a layer, e.g. ``tensorflow.contrib.layers.fully_connected``."""
    below = name.removeprefix("tensorflow.")
    return below in _RENAMED and below.startswith("contrib.")


def is_keras(name: str) -> bool:
    """Returns True for a function or class of Keras that makes layers, e.g. ``tensorflow.keras.layers.Dense``."""
    below = re.sub(r"^(tensorflow\.(python\.)?)?keras\.", "", name)
    return below != name and below.startswith(("layers.", "models.", "applications.", "Model", "Sequential"))


def frozen(old: cst.Call, new: cst.Call) -> cst.Call:
    """Returns a call of batch norm whose moving averages never change."""
    function = code(old.func).rpartition(".")[2]
    name, place = ("decay" if function == "batch_norm" else "momentum"), (2 if function == "batch_normalization" else 1)
    by_place = [one for one in new.args if one.keyword is None]
    named = [one for one in new.args if one.keyword is not None and one.keyword.value != name]
    if len(by_place) > place:
        return new.with_changes(
            args=[*by_place[:place], by_place[place].with_changes(value=cst.Float("1.0")), *by_place[place + 1 :], *named]
        )
    return new.with_changes(args=[*by_place, *named, cst.Arg(cst.Float("1.0"), cst.Name(name), equal=EQUAL)])


def translated(script: Script, old: cst.Call, new: cst.Call) -> tuple[str, str, str, Arguments, dict[str, str]]:
    """Returns what a call of a function that makes a layer becomes.

    Args:
        script: Script around the call.
        old: Call as it is in the script.
        new: The same call with converted arguments.

    Returns:
        Class of Keras, the function, its name for layers, its arguments as Keras names them, and defaults that Keras does not share.

    Raises:
        UnconvertibleError: There is no row for it, or for one of its arguments.
    """
    name = layer_function(script.called(old))
    row = LAYERS.get(name)
    function = name.rpartition(".")[2]
    given = arguments(new, row[1]) if row else None
    default, renames, always = _RENAMED.get(
        name, (function, {key: key.replace("reuse", "") for key in (row[1] if row else ())}, {})
    )
    if name == "contrib.layers.dropout":
        given = {"is_training": cst.Name("True"), **(given or {})}
        given = {key: parsed(f"1.0 - ({code(value)})") if key == "keep_prob" else value for key, value in given.items()}
    replaced = [key for key, value in (given or {}).items() if renames.get(key) in always or key == "biases_initializer"]
    default_axis = {"begin_params_axis": "-1"}
    given = {
        key: value for key, value in (given or {}).items() if code(value) != default_axis.get(key, "None") or key in replaced
    }
    has_no_bias = "biases_initializer" in given and code(given["biases_initializer"]) == "None"
    if has_no_bias:
        del given["biases_initializer"]
        always = {**always, "use_bias": "False"}
    if row is None or "inputs" not in map(renames.get, given) or not given.keys() <= renames.keys():
        raise UnconvertibleError(old, f"tf.{name}", "there is no row for this call; make the layer of tf_keras in __init__")
    return row[0], function, default, {renames[key]: value for key, value in given.items() if renames[key]}, always


def default_name(script: Script, call: cst.Call) -> str:
    """Returns the name that TensorFlow 1 gives to the first layer of a call if it asks for none; empty for calls of other functions."""
    name = layer_function(script.called(call))
    return _RENAMED.get(name, (name.rpartition(".")[2],))[0]


def asked_name(call: cst.Call) -> cst.BaseExpression:
    """Returns the name that a call asks for its layer, or None as an expression."""
    named = {one.keyword.value: one.value for one in call.args if one.keyword is not None}
    return named.get("name", named.get("scope", cst.Name("None")))


def of_network(script: Script, old: cst.Call, new: cst.Call) -> str | None:
    """Returns the call of the support code that does what ``tf.Variable`` does in a network, or a name scope around it; None for others.

    Args:
        script: Script around the call.
        old: Call as it is in the script.
        new: The same call with converted arguments.

    Raises:
        UnconvertibleError: It has an argument that a network's variable has not.
    """
    name = script.called(old)
    scope = arguments(new, ("name", "default_name", "values")) if name == "tensorflow.name_scope" else None
    if scope is not None and {"name"} <= scope.keys() <= {"name", "values"} and _makes_variables(script):
        return f"{NAME_SCOPE}({code(scope['name'])})"
    if name != VARIABLE:
        return None
    given = arguments(
        new, ("initial_value", "trainable", "collections", "validate_shape", "caching_device", "name", "variable_def", "dtype")
    )
    if given is None or not {"initial_value"} <= given.keys() <= {"initial_value", "trainable", "name", "dtype"}:
        raise UnconvertibleError(old, "tf.Variable", "only its initial value, trainable, name and dtype are converted")
    if any(
        one.attr.value == "initialized_value"
        for one in nodes(given["initial_value"], cst.Attribute)
        if isinstance(one, cst.Attribute)
    ):
        raise UnconvertibleError(
            old, "initialized_value", "the value of another variable is not known when this one is made; repeat it"
        )
    if _scope_is_entered_again(script, script.origin(old)):
        message = "its variable scope may be entered again, where TensorFlow 1 gives this variable another name; name the scope by an argument"
        raise UnconvertibleError(old, "tf.Variable", message)
    others = (f", {name}={code(value)}" for name, value in given.items() if name != "initial_value")
    first = code(given["initial_value"])
    is_late = isinstance(given["initial_value"], cst.Lambda)
    late = first if is_late else f"lambda: {first}"  # each step would compute another value
    return f"{OF_NETWORK}({late}{''.join(others)})"


def _scope_is_entered_again(script: Script, node: cst.CSTNode) -> bool:
    """Returns True if a variable scope with a name that is written there is around a call which may be made several times."""
    blocks = (one for one in nodes(script.module, cst.With) if node in {*nodes(one, cst.Call)})
    items = [item.item for one in blocks if isinstance(one, cst.With) for item in one.items]
    scopes = [one for one in items if isinstance(one, cst.Call) and script.called(one) == "tensorflow.variable_scope"]
    is_named = any(isinstance(one.args[0].value, cst.SimpleString) for one in scopes if one.args)
    functions = [one for one in nodes(script.module, cst.FunctionDef) if isinstance(one, cst.FunctionDef)]
    calls = [one for one in nodes(script.module, cst.Call) if isinstance(one, cst.Call)]
    for _ in functions if is_named else ():
        inside = [one for one in functions if node in {*nodes(one, cst.Call)}]
        function = max(inside, key=functions.index, default=None)  # the innermost
        if function is None:
            return False
        if any(node in {*nodes(loop, cst.Call)} for loop in nodes(function, cst.For, cst.While)):
            return True
        sites = [one for one in calls if simple_name(one.func) == function.name.value]
        if len(sites) != 1:
            return len(sites) > 1
        node = sites[0]
    return False


def in_snake_case(name: str) -> str:
    """Returns the name that Keras gives a layer of a class.

    Example:
        >>> in_snake_case("BatchNormalization"), in_snake_case("Conv2D")
        ('batch_normalization', 'conv2d')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name).lower()


def is_layer_of_keras(name: str) -> bool:
    """Returns True for a class of layers of Keras, or for Sequential."""
    return is_keras(name) and re.search(r"keras\.(layers\.(?!Input)[A-Z]\w*|(models\.)?Sequential)$", name) is not None


def in_network(script: Script, old: cst.Call, new: cst.Call) -> str:
    """Returns the call of the support code for a layer of Keras that a network makes each time it is called.

    Args:
        script: Script around the call.
        old: Call as it is in the script.
        new: The same call with converted arguments.

    Raises:
        UnconvertibleError: Its name may be among arguments that only the script knows.
    """
    if any(one.star for one in new.args):
        raise UnconvertibleError(old, code(old.func), "its arguments are not written one by one; write them so")
    kind = code(old.func).rpartition(".")[2]
    given = (code(one.value) for one in new.args if one.keyword is not None and one.keyword.value == "name")
    name = next(given, f'"{in_snake_case(kind)}"')
    kept = [one for one in new.args if one.keyword is None or one.keyword.value != "name"]
    made = new.with_changes(args=[*kept, cst.Arg(cst.Name("name"), cst.Name("name"), equal=EQUAL)])
    return f"{LAYER_OF_NETWORK}(lambda name: {code(made)}, {name})"


def _makes_variables(script: Script) -> bool:
    return any(script.called(one) == VARIABLE for one in nodes(script.module, cst.Call))


def of_core(script: Script, old: cst.Call, new: cst.Call) -> str:
    """Returns the call of a function of ``tf.layers`` that does what one of contrib does.

    Args:
        script: Script around the call.
        old: Call as it is in the script.
        new: The same call with converted arguments.

    Raises:
        UnconvertibleError: There is no row for it, or for one of its arguments.
    """
    keras, function, _, given, always = translated(script, old, new)
    values = {**always, **{key: code(value) for key, value in given.items()}}
    if function in TRAINING:
        values.setdefault("training", TRAINING[function])
    values |= {
        one.keyword.value: code(one.value) for one in new.args if one.keyword is not None and one.keyword.value == "reuse"
    }
    first = values.pop("inputs")
    called = f"tf.layers.{FUNCTIONS[keras]}" if keras in FUNCTIONS else OWN_FUNCTIONS[keras]
    return f"{called}({', '.join([first, *(f'{key}={value}' for key, value in values.items())])})"
