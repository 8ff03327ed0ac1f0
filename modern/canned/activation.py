"""activation_fn: Keras' own functions by name, all others as the graphs that they build."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.graph_function import GraphFunction, NotKeptError

Activation = Callable[[Any], Any]
_FIX = "Use model.save_weights, or model.export to keep only the predictions: a .keras file cannot contain Python code."


def keep_activation(function: Activation | str | None, width: int, what: str = "activation_fn") -> Any:
    """Returns the ``activation`` argument that a Keras layer needs for an ``activation_fn``.

    A ``.keras`` file stores only a function's name, and loading it finds Keras' function of that name. For a script's own ``swish``
    that is another function, so that it is stored as a graph.

    Args:
        function: Function of a tensor of shape [batch, width], the name of a Keras activation, or None.
        width: Number of the layer's units.
        what: Name of the function in errors.

    Raises:
        NotSupportedError: if the function keeps variables.

    Example:
        >>> keep_activation(tf.nn.relu, 2) is tf.nn.relu
        True
        >>> keep_activation(lambda net: 2.0 * net, 2)(tf.constant([[1.0, 4.0]])).numpy().tolist()
        [[2.0, 8.0]]
    """
    if function is None or isinstance(function, (str, tf_keras.layers.Layer)) or _is_of_keras(function):
        return function
    try:
        return GraphFunction.of(function, [tf.TensorSpec([None, width])], what, _FIX)
    except NotKeptError as refusal:
        return _UnsavableActivation(function, refusal)


def _is_of_keras(function: Activation) -> bool:
    """Returns True if Keras has the same function under the same name; TensorFlow's own compute the same."""
    name = getattr(function, "__name__", "")
    modules = (tf.nn, tf.math, tf.keras.activations, tf_keras.activations)
    theirs = [getattr(module, name, None) for module in modules]
    return theirs[-1] is not None and any(function is one for one in theirs)


class _UnsavableActivation:
    """An activation that no graph can hold: it trains and predicts, but it cannot be written to a ``.keras`` file."""

    def __init__(self, function: Activation, refusal: NotKeptError) -> None:
        self._function, self._refusal = function, refusal

    def __call__(self, net: Any) -> Any:
        return self._function(net)

    def get_config(self) -> dict[str, Any]:
        """Raises the refusal when Keras writes a file."""
        raise self._refusal
