"""Functions as graphs have the gradients of the function, or are refused."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.python.framework.function import Defun

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.graph_function import GraphFunction, keep_activation
from estimator_bridge.modern.canned.networks import recurrent_layer
from estimator_bridge.modern.canned.reading import Settings

v1 = tf.compat.v1
Function = Callable[[Any], Any]
VALUES = np.array([1.0, 4.0], np.float32)


@tf.RegisterGradient("SevenTimes")
def seven_times(op: Any, *upstream: Any) -> Any:
    return 7.0 * upstream[0]


tf.RegisterGradient("Snapshot")(seven_times)  # TensorFlow has no gradient for this operation


def double(values: Any) -> Any:
    return 2.0 * values


@Defun(tf.float32, tf.float32)
def seven(values: Any, upstream: Any) -> Any:
    return 7.0 * upstream


custom = tf.custom_gradient(lambda values: (2.0 * values, lambda upstream: 7.0 * upstream))


def defun(**options: Any) -> Function:
    return Defun(tf.float32, **options)(double)


def by_python(values: Any) -> Any:
    return defun(python_grad_func=seven_times)(values)


def twins(values: Any) -> Any:
    """Two functions with one name in the graph, because the name is made from their content."""
    return by_python(values) + 0.0 * defun()(values)


def overridden(values: Any) -> Any:
    with v1.get_default_graph().gradient_override_map({"AddV2": "TwiceSeven"}):
        return values + values


@tf.RegisterGradient("TwiceSeven")
def twice_seven(op: Any, upstream: Any) -> Any:
    return 7.0 * upstream, None


def in_cond(function: Function) -> Function:
    return lambda values: tf.cond(tf.reduce_sum(values) > 0.0, lambda: function(values), lambda: values)


def in_while(function: Function) -> Function:
    return lambda values: tf.while_loop(
        lambda i, _: i < 1, lambda i, more: (i + 1, tf.ensure_shape(function(more), [2])), (0, values)
    )[1]


DEFAULT: Mapping[str, Function] = {
    "tf.function": tf.function(double),
    "tf.function of tf.cond": tf.function(in_cond(double)),
    "tf.function of a loop": tf.function(in_while(double)),
    "tf.function in tf.cond in tf.function": tf.function(in_cond(tf.function(in_cond(double)))),
    "Defun": defun(),
    "Defun, not inlined": defun(noinline=True, func_name="apart"),
    "Defun in tf.function": tf.function(defun()),
    "Defun in Defun": Defun(tf.float32)(by_python),  # TensorFlow uses its own gradient here
}
OWN: Mapping[str, Function] = {
    "custom_gradient": custom,
    "custom_gradient in tf.function": tf.function(custom),
    "gradient_override_map": overridden,
    "RegisterGradient": lambda values: tf.raw_ops.Snapshot(input=values + tf.stop_gradient(values)),
    "grad_func": defun(grad_func=seven),
    "python_grad_func": by_python,
    "python_grad_func, not inlined": defun(python_grad_func=seven_times, noinline=True, func_name="own_apart"),
    "python_grad_func in tf.function": tf.function(by_python),
    "python_grad_func in tf.cond": in_cond(by_python),
    "python_grad_func in tf.cond in tf.function": tf.function(in_cond(by_python)),
    "python_grad_func in a loop": in_while(by_python),
    "python_grad_func, beside one without": twins,
    "both in tf.function": tf.function(twins),
}


def in_graph(function: Function) -> tuple[Any, Any]:
    """Returns values and gradients as an Estimator computes them."""
    with tf.Graph().as_default(), v1.Session() as session:
        given = tf.constant(VALUES)
        result = function(given)
        return session.run((result, *tf.gradients(result, [given])))


def by_tape(function: Function) -> tuple[Any, Any]:
    given = tf.constant(VALUES)
    with tf.GradientTape() as tape:
        tape.watch(given)
        result = function(given)
    return result, tape.gradient(result, given)


@pytest.mark.parametrize("way", DEFAULT)
def test_gradients_are_those_of_the_function(way: str) -> None:
    """The gradient of 2 x is 2."""
    config = GraphFunction.of(DEFAULT[way], [tf.TensorSpec([2])], "function").get_config()
    for result, gradient in (in_graph(DEFAULT[way]), by_tape(GraphFunction.from_config(config))):
        np.testing.assert_array_equal(result, [2.0, 8.0])
        np.testing.assert_array_equal(gradient, [2.0, 2.0])


@pytest.mark.parametrize("function", [in_while(double), in_cond(double), lambda values: tf.map_fn(double, values)])
def test_loops_in_a_script_of_tensorflow_1(function: Function) -> None:
    """Its graphs contain no functions for loops; the gradient of 2 x is 2."""
    before = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
        kept = GraphFunction.of(function, [tf.TensorSpec([2])], "function")
        for result, gradient in (in_graph(function), by_tape(kept)):
            np.testing.assert_array_equal(result, [2.0, 8.0])
            np.testing.assert_array_equal(gradient, [2.0, 2.0])
        assert not v1.control_flow_v2_enabled()
    finally:
        if before:
            v1.enable_control_flow_v2()


@pytest.mark.parametrize("way", OWN)
def test_a_custom_gradient_is_refused(way: str) -> None:
    """The custom gradient of 2 x is 7."""
    result, gradient = in_graph(OWN[way])
    np.testing.assert_array_equal(result, [2.0, 8.0])
    np.testing.assert_array_equal(gradient, [7.0, 7.0])
    with pytest.raises(NotSupportedError, match="a custom gradient"):
        GraphFunction.of(OWN[way], [tf.TensorSpec([2])], "function")


def swish(net: Any) -> Any:
    """Has the name of another function of Keras."""
    return 3.0 * net


def dense(activation: Any) -> Any:
    inputs = tf_keras.Input([2])
    return tf_keras.Model(
        inputs, tf_keras.layers.Dense(2, keep_activation(activation, 2), kernel_initializer="identity")(inputs)
    )


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (swish, [-3.0, 6.0]),
        (tf.function(swish), [-3.0, 6.0]),
        (tf.square, [1.0, 4.0]),
        (tf.nn.relu, [0.0, 2.0]),
        ("relu", [0.0, 2.0]),
        (None, [-1.0, 2.0]),
    ],
)
def test_activations_are_saved_and_loaded(activation: Any, expected: list[float], tmp_path: Path) -> None:
    dense(activation).save(tmp_path / "model.keras")
    loaded = tf_keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(tf.constant([[-1.0, 2.0]])), [expected])


def softsign(net: Any) -> Any:
    """Has the name of another function of Keras."""
    return 0.5 * net


@pytest.mark.parametrize(
    ("cell", "function", "stacked"),
    [("LSTMCell", softsign, False), ("GRUCell", functools.partial(tf.nn.leaky_relu, alpha=0.5), True)],
)
def test_activations_of_recurrent_cells_are_saved_and_loaded(
    cell: str, function: Function, stacked: bool, tmp_path: Path
) -> None:
    """Keras with the function itself, the converted model and the loaded model compute the same."""
    own = getattr(tf_keras.layers, cell)(2, activation=function, kernel_initializer="ones", recurrent_initializer="ones")
    values = {"cell_type": None, "units": None, "return_sequences": False}
    made = recurrent_layer(
        Settings(
            "rnn", values | {"rnn_cell_fn": lambda: tf_keras.layers.StackedRNNCells([own]) if stacked else own}, keras=True
        )
    )
    steps = tf.constant([[[0.5], [-0.25]]])
    expected = tf_keras.layers.RNN(own)(steps)
    inputs = tf_keras.Input([None, 1])
    tf_keras.Model(inputs, made(inputs)).save(tmp_path / "model.keras")
    loaded = tf_keras.models.load_model(tmp_path / "model.keras")
    for layer in (made, loaded):
        np.testing.assert_allclose(layer(steps), expected, rtol=1e-6)


def test_an_activation_with_a_custom_gradient_is_not_saved(tmp_path: Path) -> None:
    model = dense(custom)
    np.testing.assert_array_equal(by_tape(lambda values: model(values[tf.newaxis]))[1], [7.0, 7.0])
    with pytest.raises(NotSupportedError, match="a custom gradient"):
        model.save(tmp_path / "model.keras")
    assert not (tmp_path / "model.keras").exists()
