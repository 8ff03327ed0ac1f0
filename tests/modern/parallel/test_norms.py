"""Optimizers that update a variable by a norm of it are found, and those that treat each element alike are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.model_graph import operation
from estimator_bridge.modern.graph.stages import plan
from estimator_bridge.modern.parallel.norms import check_elementwise
from tests.modern.jobs import embedded, estimator, linear, regression_input, spec, v1

Own = Callable[[Any, Any], Any]
"""Function of a variable and its gradient that returns what is subtracted."""


def of_the_script(change: Own) -> Callable[[Any], Any]:
    """An optimizer that the script writes with assignments, as BERT's is."""

    def train(loss: Any) -> Any:
        weights = v1.trainable_variables()
        pairs = zip(weights, tf.gradients(loss, weights), strict=True)
        updates = [weight.assign_sub(change(weight, tf.convert_to_tensor(gradient))) for weight, gradient in pairs]
        return tf.group(*updates, v1.train.get_global_step().assign_add(1))

    return train


def of_a_class(change: Own) -> Callable[[Any], Any]:
    """An optimizer that the script derives from TensorFlow's."""

    class Own(v1.train.Optimizer):
        def __init__(self) -> None:
            super().__init__(False, "Own")

        def _apply_dense(self, gradient: Any, variable: Any) -> Any:
            return variable.assign_sub(change(variable, gradient)).op

    def train(loss: Any) -> Any:
        pairs = Own().compute_gradients(loss)
        dense = [(tf.convert_to_tensor(gradient), variable) for gradient, variable in pairs]
        return Own().apply_gradients(dense, v1.train.get_global_step())

    return train


def of_tensorflow(change: Callable[[list[Any]], list[Any]]) -> Callable[[Any], Any]:
    """Adam on changed gradients."""

    def train(loss: Any) -> Any:
        optimizer = v1.train.AdamOptimizer(0.1)
        gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        changed = zip(change(list(gradients)), variables, strict=True)
        return optimizer.apply_gradients(changed, v1.train.get_global_step())

    return train


def lamb(weight: Any, gradient: Any) -> Any:
    """The ratio of two norms scales the update."""
    return 0.1 * gradient * tf.norm(weight) / (tf.norm(gradient) + 1e-6)


def clipped(weight: Any, gradient: Any) -> Any:
    """The norm of the gradient alone."""
    return 0.1 * tf.clip_by_norm(gradient, 0.5)


def centered(weight: Any, gradient: Any) -> Any:
    """The mean of the gradient."""
    return 0.1 * (gradient - tf.reduce_mean(gradient))


def decayed(weight: Any, gradient: Any) -> Any:
    """Each element by itself."""
    return 0.1 * tf.sign(gradient) + 0.01 * weight


def by_each_norm(gradients: list[Any]) -> list[Any]:
    return [tf.clip_by_norm(gradient, 0.5) for gradient in gradients]


def check(train: Callable[[Any], Any], folder: Path) -> None:
    """Checks a model with a table and a dense layer."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) + embedded(features["words"]) - labels))
        return spec(mode, loss, train(loss))

    model = model_graph.build(estimator(model_fn, folder), regression_input, model_graph.TRAIN, None)
    check_elementwise(model, plan(operation(model.spec.train_op), model.spec.loss, model.updates, []))


@pytest.mark.parametrize("change", [lamb, clipped, centered])
@pytest.mark.parametrize("kind", [of_the_script, of_a_class])
def test_a_norm_of_one_variable_is_refused(tmp_path: Path, kind: Callable[[Own], Any], change: Own) -> None:
    """With the variable, the operation and this file's line."""
    with pytest.raises(NotSupportedError, match="by a norm or the like of the whole variable") as refused:
        check(kind(change), tmp_path)
    assert refused.value.asked_by is not None
    assert refused.value.asked_by.startswith(__file__)


@pytest.mark.parametrize(
    "train",
    [
        of_the_script(decayed),
        of_a_class(decayed),
        of_tensorflow(by_each_norm),
        of_tensorflow(lambda gradients: tf.clip_by_global_norm(gradients, 0.5)[0]),
    ],
    ids=["script", "class", "each norm", "global norm"],
)
def test_elementwise_updates_pass(tmp_path: Path, train: Callable[[Any], Any]) -> None:
    """Products of the model itself are no norms, and TensorFlow's optimizers get gradients that were clipped whole."""
    check(train, tmp_path)
