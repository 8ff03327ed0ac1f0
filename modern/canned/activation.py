"""activation_fn: Keras' own by its name, any other as the graph that it builds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from estimator_bridge.modern.canned.graph_function import GraphFunction, NotKeptError

Activation = Callable[[Any], Any]
_FIX = "Use model.save_weights, or model.export for predictions alone: a .keras file does not hold Python code."


def kept_activation(function: Activation | str | None, width: int, what: str = "activation_fn") -> Any:
    """What a layer of this width is given for an ``activation_fn``.

    A ``.keras`` file names a function, and whoever loads it takes Keras' own of that name: another one, for a script's own ``swish``.

    Args:
        function: of a tensor of shape [batch, width]; None for none, a name for Keras' own.
        width: the layer's units.
        what: how an error calls the function.

    Raises:
        NotSupportedError: for a function that keeps variables.

    Example:
        >>> kept_activation(tf.nn.relu, 2) is tf.nn.relu
        True
        >>> kept_activation(lambda net: 2.0 * net, 2)(tf.constant([[1.0, 4.0]])).numpy().tolist()
        [[2.0, 8.0]]
    """
    if function is None or isinstance(function, (str, tf_keras.layers.Layer)) or _is_of_keras(function):
        return function
    try:
        return GraphFunction.of(function, [tf.TensorSpec([None, width])], what, _FIX)
    except NotKeptError as refusal:
        return _Unkept(function, refusal)


def _is_of_keras(function: Activation) -> bool:
    """Whether Keras has it by its name; of TensorFlow's, its own compute the same."""
    name = getattr(function, "__name__", "")
    modules = (tf.nn, tf.math, tf.keras.activations, tf_keras.activations)
    theirs = [getattr(module, name, None) for module in modules]
    return theirs[-1] is not None and any(function is one for one in theirs)


class _Unkept:
    """An activation that is more than a graph: it trains and predicts, and is refused when a ``.keras`` file is written."""

    def __init__(self, function: Activation, refusal: NotKeptError) -> None:
        self._function, self._refusal = function, refusal

    def __call__(self, net: Any) -> Any:
        return self._function(net)

    def get_config(self) -> dict[str, Any]:
        """Refuses, once Keras asks what to write."""
        raise self._refusal
