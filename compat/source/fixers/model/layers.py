"""Functions of ``tf.layers`` as layers of Keras, which a model makes once and calls in each step."""

from __future__ import annotations

import dataclasses
import re

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import reads_and_writes
from estimator_bridge.compat.source.fixers.script import Arguments, Script, arguments, code

_WEIGHTS = (
    "kernel_initializer", "bias_initializer", "kernel_regularizer", "bias_regularizer", "activity_regularizer",
    "kernel_constraint", "bias_constraint", "trainable", "name",
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
    "trainable", "name",
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
"""Function below ``tf``: the class below ``tf_keras.layers``, and TensorFlow 1's parameters, which Keras names alike."""
_CONTRIB = {
    "activation_fn": "activation", "weights_initializer": "kernel_initializer", "weights_regularizer": "kernel_regularizer",
    "biases_initializer": "bias_initializer", "biases_regularizer": "bias_regularizer", "trainable": "trainable", "scope": "name",
    "stride": "strides", "padding": "padding", "inputs": "inputs",
}  # fmt: skip
_POOLED = {**_CONTRIB, "kernel_size": "pool_size"}
_CONVOLVED = {**_CONTRIB, "num_outputs": "filters", "kernel_size": "kernel_size", "rate": "dilation_rate"}
_NORMED = {
    "inputs": "inputs", "decay": "momentum", "center": "center", "scale": "scale", "epsilon": "epsilon", "is_training": "training",
    "trainable": "trainable", "updates_collections": "", "fused": "fused", "scope": "name",
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
_TRAINING = {"batch_normalization": "False", "dropout": "False", "batch_norm": "True"}
"""Functions whose layers are told if they train, and what they do if nothing is said."""
_DEFAULTS = {"dropout": {"rate": "0.5"}}
"""Arguments that Keras needs where TensorFlow 1 has a default."""


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer of a model.

    Attributes:
        attribute: Name of the model's attribute.
        made: Expression that makes the layer, or a list of layers.
    """

    attribute: str
    made: str


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


def item_name(function: str) -> str:
    """Returns the name that a loop over the layers of a list gives to each."""
    return f"{function}_layer"


def _translated(script: Script, old: cst.Call, new: cst.Call) -> tuple[str, str, str, Arguments, dict[str, str]]:
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
    default, renames, always = _RENAMED.get(name, (function, {key: key for key in (row[1] if row else ())}, {}))
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
    reused = [one for one in new.args if one.keyword is not None and one.keyword.value == "reuse"]  # names are reused anyway
    keras, function, _, given, always = _translated(
        script, old, new.with_changes(args=[one for one in new.args if one not in reused])
    )
    values = {**always, **{key: code(value) for key, value in given.items()}}
    if function in _TRAINING:
        values.setdefault("training", _TRAINING[function])
    first = values.pop("inputs")
    called = f"tf.layers.{_FUNCTIONS[keras]}" if keras in _FUNCTIONS else FUSED_NORMS[1]
    return f"{called}({', '.join([first, *(f'{key}={value}' for key, value in values.items())])})"


class Lifting:
    """Makes the layers of a network; one object for each model.

    Args:
        script: Script around the network.
        own: Names that are bound in the network, or given to it: no layer can be made from their values.

    Attributes:
        layers: The layers, in the order in which they are called.
    """

    def __init__(self, script: Script, own: set[str]) -> None:
        self._script = script
        self._own = own
        self._counts: dict[str, int] = {}
        self._looped: set[str] = set()
        self._made_before: dict[cst.CSTNode, str] = {}  # call -> attribute, for calls that stand in the class several times
        self.layers: list[Layer] = []

    def call(self, old: cst.Call, new: cst.Call, loop: cst.For | None, scope: str) -> str:
        """Returns the call of the layer that replaces a call of ``tf.layers``.

        Args:
            old: Call as it is in the script.
            new: The same call with converted arguments.
            loop: Loop around the call.
            scope: Scopes of variables around the call, each with a slash.

        Raises:
            UnconvertibleError: The call depends on values of the network, or has arguments that Keras does not know.
        """
        keras, function, default, given, always = _translated(self._script, old, new)
        inputs = [code(given.pop("inputs"))]
        training = given.pop("training", None)
        if function in _TRAINING:
            inputs.append(f"training={_TRAINING[function] if training is None else code(training)}")
        known = self._made_before.get(self._script.origin(old))
        if known is not None and loop is None:
            return f"self.{known}({', '.join(inputs)})"
        attribute, named = self._named(old, default, given, loop, scope)
        self._made_before[self._script.origin(old)] = attribute
        made = self._made(
            keras, {**_DEFAULTS.get(function, {}), **always, **{key: code(value) for key, value in given.items()}, **named}
        )
        self._check(old, given, loop)
        if loop is not None:
            made = f"[{made} for {code(loop.target)} in {code(loop.iter)}]"
        self.layers.append(Layer(attribute, made))
        return f"{item_name(function) if loop is not None else f'self.{attribute}'}({', '.join(inputs)})"

    def made_once(self, call: cst.Call) -> str:
        """Returns the attribute for an object of Keras that the script makes itself.

        Raises:
            UnconvertibleError: The call depends on values of the network.
        """
        name = code(call.func).rpartition(".")[2]
        self._check(call, {str(place): argument.value for place, argument in enumerate(call.args)}, None)
        attribute = self._free(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
        self.layers.append(Layer(attribute, code(call)))
        return attribute

    def _made(self, keras: str, given: dict[str, str]) -> str:
        package = "" if keras in FUSED_NORMS else "tf_keras.layers."
        return f"{package}{keras}({', '.join(f'{key}={value}' for key, value in given.items())})"

    def _named(
        self, old: cst.Call, function: str, given: Arguments, loop: cst.For | None, scope: str
    ) -> tuple[str, dict[str, str]]:
        """Returns attribute and name of a layer: TensorFlow 1's, by which checkpoints are converted."""
        name = given.pop("name", None)
        if name is not None and not isinstance(name, cst.SimpleString):
            raise UnconvertibleError(
                old, f"tf.layers.{function}(name=...)", "the name is not written as a string; make the layer in __init__"
            )
        if loop is not None:
            if name is not None or scope or function in self._looped:
                raise UnconvertibleError(
                    old,
                    f"tf.layers.{function}",
                    "a named layer, or a second one of its kind, in a loop; make the layers in __init__",
                )
            self._looped.add(function)
            return self._free(f"{function}_layers"), {}
        text = str(name.evaluated_value) if name is not None else self._default(function, scope)
        if text is None:
            return self._free(function), {}
        return self._free(text.replace("/", "_").replace("-", "_")), {"name": f'"{scope}{text}"'}

    def _default(self, function: str, scope: str) -> str | None:
        """Returns the name that TensorFlow 1 gives to an unnamed layer; None behind a loop, where Keras counts alike."""
        if function in self._looped:
            return None
        count = self._counts.get(scope + function, 0)
        self._counts[scope + function] = count + 1
        return f"{function}_{count}" if count else function

    def _free(self, attribute: str) -> str:
        taken = {layer.attribute for layer in self.layers}
        attribute = attribute if attribute.isidentifier() else f"layer_{attribute}"
        while attribute in taken or attribute in _OF_MODEL:
            attribute += "_"
        return attribute

    def _check(self, old: cst.Call, given: Arguments, loop: cst.For | None) -> None:
        own = self._own - (set(reads_and_writes(loop.target)[0]) if loop is not None else set())
        read = {name for value in given.values() for name in reads_and_writes(value)[0]}
        if loop is not None:
            read |= reads_and_writes(loop.iter)[0]
        if read & own:
            message = f"it depends on {min(read & own)}, a value of the network; make the layer of tf_keras in __init__"
            raise UnconvertibleError(old, code(old.func), message)


_OF_MODEL = frozenset(
    {
        "layers",
        "loss",
        "metrics",
        "params",
        "config",
        "model_dir",
        "inputs",
        "outputs",
        "optimizer",
        "name",
        "call",
        "build",
        "dtype",
        "weights",
        "losses",
        "input",
        "output",
    }
)
"""Attributes that a model has already."""
