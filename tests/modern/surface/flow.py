"""Loops, conditions, recurrent networks, functions and custom gradients."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tests.modern.jobs import ModelFn, linear, v1
from tests.modern.surface.building import Features, squared, step, together


def sequence(features: Features) -> Any:
    return tf.expand_dims(features["x"], 2)


def recurrent(features: Features, labels: Any) -> Any:
    """Stacked cells of several kinds."""
    cells = v1.nn.rnn_cell
    rnn = cells.MultiRNNCell([cells.GRUCell(3), cells.LSTMCell(2, num_proj=2)])
    outputs, _ = v1.nn.dynamic_rnn(rnn, sequence(features), dtype=tf.float32)
    return squared(linear(outputs[:, -1]), labels)


def in_both_directions(features: Features, labels: Any) -> Any:
    lengths = tf.reduce_sum(tf.cast(features["words"][:, :2] > 2, tf.int32), 1) + 1
    cells = v1.nn.rnn_cell.BasicLSTMCell(2), v1.nn.rnn_cell.BasicLSTMCell(2)
    outputs, _ = v1.nn.bidirectional_dynamic_rnn(*cells, sequence(features), lengths, dtype=tf.float32)
    return squared(linear(tf.reduce_mean(tf.concat(outputs, 2), 1)), labels)


def looped(features: Features, labels: Any) -> Any:
    """Variables that a loop and a condition read and write."""
    factor = v1.get_variable("factor", initializer=0.9)
    turns = v1.get_variable("turns", initializer=0, trainable=False)

    def turn(i: Any, x: Any) -> tuple[Any, Any]:
        with tf.control_dependencies([v1.assign_add(turns, 1)]):
            return i + 1, x * factor

    _, x = v1.while_loop(lambda i, x: i < 3, turn, [tf.constant(0), features["x"]])
    x = v1.cond(tf.equal(step() % 2, 0), lambda: x * factor, lambda: x - factor)
    x = v1.case([(tf.equal(step() % 3, 0), lambda: x), (tf.equal(step() % 3, 1), lambda: 2.0 * x)], lambda: 3.0 * x)
    return squared(linear(x), labels)


def collected(features: Features, labels: Any) -> Any:
    """TensorArrays, map_fn and scan."""
    squares = v1.map_fn(lambda row: tf.reduce_sum(row * row), features["x"])
    sums = v1.scan(lambda total, row: total * 0.5 + row, features["x"])
    columns = tf.TensorArray(tf.float32, 3).unstack(tf.transpose(features["x"]))
    _, doubled = v1.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, a.write(i, columns.read(i) * 2.0)),
        [tf.constant(0), tf.TensorArray(tf.float32, 3)],
    )
    net = tf.concat([tf.expand_dims(squares, 1), sums, tf.transpose(doubled.stack())], 1)
    return squared(linear(net), labels)


def with_other_gradients(features: Features, labels: Any) -> Any:
    with v1.get_default_graph().gradient_override_map({"Sign": "Identity", "Round": "EstimatorBridgeHalf"}):
        binary = tf.sign(linear(features["x"])) + tf.round(linear(features["x"] * 3.0, "rounded"))
    return squared(binary, labels)


@tf.RegisterGradient("EstimatorBridgeHalf")
def _half(op: Any, gradient: Any) -> Any:
    return gradient * 0.5


def with_own_gradient_of_variables(features: Features, labels: Any) -> Any:
    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return tf.exp(x), lambda gradient: tf.clip_by_value(gradient * tf.exp(x), -0.1, 0.1)

    kernel = v1.get_variable("kernel", [3, 1], initializer=v1.constant_initializer(0.1))
    return squared(clipped(tf.matmul(features["x"], kernel)), labels)


def of_second_order(features: Features, labels: Any) -> Any:
    predicted = linear(tf.tanh(features["x"]) * v1.get_variable("scale", initializer=1.5))
    (slope,) = tf.gradients(predicted, [features["x"]])
    return squared(predicted, labels) + tf.reduce_mean(tf.square(slope))


def of_functions(features: Features, labels: Any) -> Any:
    @tf.function
    def scaled(values: Any, times: Any) -> Any:
        for _ in tf.range(times):
            values = values * 0.9
        return values

    return squared(scaled(linear(features["x"]), tf.constant(2)), labels)


def in_branches(features: Features, labels: Any, mode: str) -> Any:
    """Gradients that are accumulated, and applied in a branch of every second step, in which variables are made, too."""
    loss = squared(linear(features["x"]), labels)
    global_step = v1.train.get_global_step()
    weights = v1.trainable_variables()
    gradients = tf.gradients(loss, weights)
    optimizer = v1.train.AdamOptimizer(0.1)

    def apply() -> Any:
        made = [v1.Variable(0.0, name="own", trainable=False), v1.get_variable("stored", initializer=0.0, trainable=False)]
        with tf.name_scope("deep"):
            made.append(v1.Variable(0.0, name="own", trainable=False))
        turns = tf.cond(global_step > 1, lambda: v1.Variable(0.0, name="inner", trainable=False).assign_add(1.0), lambda: 0.0)
        applied = optimizer.apply_gradients(zip(gradients, weights, strict=True))
        with tf.control_dependencies([applied, *(v1.assign_add(one, 1.0) for one in made)]):
            return tf.identity(turns)

    turned = tf.cond(tf.equal(global_step % 2, 0), apply, lambda: 0.0)
    with tf.control_dependencies([turned]):  # the inner branch reads the step, too
        train_op = v1.assign_add(global_step, 1)
    return v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


MODELS: dict[str, ModelFn] = {
    "recurrent networks": together(recurrent, in_both_directions),
    "loops and conditions": together(looped, collected),
    "gradients": together(with_other_gradients, with_own_gradient_of_variables, of_second_order, of_functions),
}

AS_TENSORFLOW_1: dict[str, ModelFn] = {"variables in branches": in_branches}
"""Models whose variables have TensorFlow 1's names only with its control flow."""
