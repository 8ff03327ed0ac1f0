"""Functions of ``tf.layers`` as layers of Keras, which a model makes once and calls in each step."""

from __future__ import annotations

import re

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.script import Arguments, Script, arguments, code

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
_NORM = (
    "inputs", "axis", "momentum", "epsilon", "center", "scale", "beta_initializer", "gamma_initializer", "moving_mean_initializer",
    "moving_variance_initializer", "beta_regularizer", "gamma_regularizer", "beta_constraint", "gamma_constraint", "training",
    "trainable", "name", "reuse",
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
_CONTRIB_CONV = ("inputs", "num_outputs", "kernel_size", "stride", "padding", "data_format", "rate", *_CONTRIB_WEIGHTS)
LAYERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "layers.average_pooling1d": ("AveragePooling1D", _POOL),
    "layers.average_pooling2d": ("AveragePooling2D", _POOL),
    "layers.batch_normalization": ("BatchNormalization", _NORM),
    "layers.conv1d": ("Conv1D", _CONV),
    "layers.conv2d": ("Conv2D", _CONV),
    "layers.conv3d": ("Conv3D", _CONV),
    "layers.dense": ("Dense", ("inputs", "units", "activation", "use_bias", *_WEIGHTS)),
    "layers.dropout": ("Dropout", ("inputs", "rate", "noise_shape", "seed", "training", "name")),
    "contrib.layers.avg_pool2d": ("AveragePooling2D", ("inputs", "kernel_size", "stride", "padding")),
    "contrib.layers.batch_norm": ("FusedBatchNormalization", _CONTRIB_NORM),
    "contrib.layers.conv2d": ("Conv2D", _CONTRIB_CONV),
    "contrib.layers.convolution2d": ("Conv2D", _CONTRIB_CONV),
    "contrib.layers.flatten": ("Flatten", ("inputs",)),
    "contrib.layers.fully_connected": ("Dense", ("inputs", "num_outputs", *_CONTRIB_WEIGHTS)),
    "contrib.layers.max_pool2d": ("MaxPooling2D", ("inputs", "kernel_size", "stride", "padding")),
    "layers.flatten": ("Flatten", ("inputs", "name", "data_format")),
    "layers.max_pooling1d": ("MaxPooling1D", _POOL),
    "layers.max_pooling2d": ("MaxPooling2D", _POOL),
    "feature_column.input_layer": ("DenseFeatures", ("inputs", "feature_columns")),
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
_RENAMED: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "contrib.layers.avg_pool2d": ("AvgPool2D", _POOLED, {"strides": "2"}),
    "contrib.layers.batch_norm": ("BatchNorm", _NORMED, {"momentum": "0.999", "scale": "False"}),
    "contrib.layers.conv2d": ("Conv", _CONVOLVED, {"padding": '"same"', "activation": "tf.nn.relu"}),
    "contrib.layers.convolution2d": ("Conv", _CONVOLVED, {"padding": '"same"', "activation": "tf.nn.relu"}),
    "contrib.layers.fully_connected": ("fully_connected", {**_CONTRIB, "num_outputs": "units"}, {"activation": "tf.nn.relu"}),
    "contrib.layers.max_pool2d": ("MaxPool2D", _POOLED, {"strides": "2"}),
}
"""Functions of contrib with the name that their layers have, what Keras calls their parameters, and defaults that Keras does not share."""
FUSED_NORMS = ("FusedBatchNormalization", "fused_batch_normalization")
"""Layer and function of the support code for contrib's batch_norm, which keeps the unbiased variance for inputs of rank 2, too."""
_FUNCTIONS = {row[0]: name.removeprefix("layers.") for name, row in LAYERS.items() if name.startswith("layers.")}
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
    return name.removeprefix("tensorflow.") in _RENAMED


def is_keras(name: str) -> bool:
    """Returns True for a function or class of Keras that makes layers, e.g. ``tensorflow.keras.layers.Dense``."""
    below = re.sub(r"^(tensorflow\.(python\.)?)?keras\.", "", name)
    return below != name and below.startswith(("layers.", "models.", "applications.", "Model", "Sequential"))


def with_functions(script: Script) -> str:
    """Returns the source in which layers that are called where they are made are calls of functions.

    Args:
        script: Script.

    Example:
        >>> with_functions(Script("import tensorflow as tf; net = tf.layers.Dense(9, name='a')(net)"))
        "import tensorflow as tf; net = tf.layers.dense(net, 9, name='a')"
    """
    return script.module.visit(_Functions(script)).code


class _Functions(cst.CSTTransformer):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        made = updated_node.func
        function = _FUNCTIONS.get(self._script.called(original_node.func).removeprefix("tensorflow.layers."))
        first = updated_node.args[0] if updated_node.args else None
        if function is None or first is None or first.keyword or first.star or not isinstance(made, cst.Call):
            return updated_node
        assert isinstance(made.func, cst.Attribute)
        every = [first.with_changes(comma=cst.MaybeSentinel.DEFAULT), *made.args, *updated_node.args[1:]]
        return made.with_changes(func=made.func.with_changes(attr=cst.Name(function)), args=every)


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
    replaced = [key for key, value in (given or {}).items() if renames.get(key) in always or key == "biases_initializer"]
    given = {key: value for key, value in (given or {}).items() if code(value) != "None" or key in replaced}
    none_is_not_zero = "biases_initializer" in given and code(given["biases_initializer"]) == "None"  # it takes the bias away
    if row is None or "inputs" not in given or not given.keys() <= renames.keys() or none_is_not_zero:
        raise UnconvertibleError(old, f"tf.{name}", "there is no row for this call; make the layer of tf_keras in __init__")
    return row[0], function, default, {renames[key]: value for key, value in given.items() if renames[key]}, always


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
    first = values.pop("inputs")
    called = f"tf.layers.{_FUNCTIONS[keras]}" if keras in _FUNCTIONS else FUSED_NORMS[1]
    return f"{called}({', '.join([first, *(f'{key}={value}' for key, value in values.items())])})"
