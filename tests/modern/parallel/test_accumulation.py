"""Micro-batches: the update of the whole batch, whatever the number of parts in which it is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Progress
from tests.modern.jobs import (
    CLASSES,
    IDS,
    WORDS,
    ModelFn,
    Values,
    X,
    Y,
    assert_close,
    embedded,
    engine,
    estimator,
    linear,
    regression_input,
    saved,
    spec,
    v1,
)

TOLERANCE = 1e-6
"""Largest relative difference of the first losses: the order of float32 additions."""


class _Losses(Callback):
    def __init__(self) -> None:
        self.values: list[float] = []

    def after(self, progress: Progress) -> bool:
        self.values.extend(map(float, progress.losses))
        return False


def train(
    model_fn: ModelFn, folder: Path, micro: int, input_fn: Callable[..., Any] = regression_input, steps: int = 5, **options: Any
) -> tuple[list[float], Values]:
    """Returns the losses of a training, and the values of its checkpoint."""
    losses, hooks = _Losses(), options.pop("hooks", None)
    made = model_fn if isinstance(model_fn, v1.estimator.Estimator) else estimator(model_fn, folder)
    engine("modern", micro=micro, callbacks=lambda: [losses], **options).train(made, input_fn, steps=steps, hooks=hooks)
    return losses.values, saved(folder)


def check_same(model_fn: ModelFn, folder: Path, numbers: tuple[int, ...] = (2, 4), **options: Any) -> tuple[list[float], Values]:
    """Asserts that the losses and the checkpoint do not depend on the number of micro-batches; returns those of one."""
    losses, values = train(model_fn, folder / "1", 1, **options)
    for number in numbers:
        others, other = train(model_fn, folder / str(number), number, **options)
        np.testing.assert_allclose(others, losses, rtol=TOLERANCE)
        assert_close(other, values, 1e-5)
    return losses, values


def clipped(loss: Any, optimizer: Any, norm: float = 0.1) -> Any:
    """Applies gradients that are clipped by their global norm."""
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    kept, _ = tf.clip_by_global_norm(gradients, norm)
    return optimizer.apply_gradients(zip(kept, variables, strict=True), v1.train.get_global_step())


def regression(features: Any, labels: Any, mode: str) -> Any:
    """A model with a dense and a sparse gradient, clipped by their global norm."""
    loss = tf.reduce_mean(tf.square(linear(features["x"]) + embedded(features["words"]) - labels))
    return spec(mode, loss, clipped(loss, v1.train.AdagradOptimizer(0.1)))


def test_a_clipped_step_is_that_of_the_whole_batch_in_numpy(tmp_path: Path) -> None:
    """The norm is that of the whole batch's gradient; norms of micro-batches would clip otherwise."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(tf.square(linear(features["x"]) - labels))
        return spec(mode, loss, clipped(loss, v1.train.GradientDescentOptimizer(1.0), 0.5))

    losses, values = train(model_fn, tmp_path, 4, steps=1)
    x, y = np.float64(X[:8]), np.float64(Y[:8])
    kernel = np.linspace(-0.5, 0.5, 3).reshape(-1, 1)
    error = x @ kernel - y
    by_kernel, by_bias = x.T @ error / 4, error.sum(0) / 4
    scale = 0.5 / np.sqrt(np.square(by_kernel).sum() + np.square(by_bias).sum())
    assert scale < 1
    np.testing.assert_allclose(losses, [np.mean(np.square(error))], rtol=TOLERANCE)
    np.testing.assert_allclose(values["dense/kernel"], kernel - scale * by_kernel, rtol=1e-6)
    np.testing.assert_allclose(values["dense/bias"], -scale * by_bias, rtol=1e-6)


def test_sparse_and_dense_gradients_are_those_of_the_whole_batch(tmp_path: Path) -> None:
    """3 micro-batches of 8 rows have 2, 3 and 3."""
    check_same(regression, tmp_path, (2, 3, 4))


def test_a_smaller_last_batch_is_whole_too(tmp_path: Path) -> None:
    """48 rows in batches of 10 end with one of 8, which 4 does not divide, as 10."""
    check_same(regression, tmp_path, (4,), input_fn=lambda: regression_input(10, 1))


def test_a_summed_loss_adds_up_and_has_its_regularization_once(tmp_path: Path) -> None:
    """``tf.losses.Reduction.SUM`` with the decay of two variables, one of which the batch reads sparsely."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        out = linear(features["x"]) + embedded(features["words"])
        v1.losses.mean_squared_error(labels, out, reduction=v1.losses.Reduction.SUM)
        weights = v1.trainable_variables()
        v1.losses.add_loss(0.3 * tf.nn.l2_loss(weights[0]), v1.GraphKeys.REGULARIZATION_LOSSES)
        loss = v1.losses.get_total_loss() + 0.1 * tf.nn.l2_loss(weights[1])
        return spec(mode, loss, v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss, v1.train.get_global_step()))

    check_same(model_fn, tmp_path)


def test_a_summed_loss_with_a_mean_in_it_is_refused(tmp_path: Path) -> None:
    """Whatever tf.losses was called with last."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        out = linear(features["x"])
        loss = tf.reduce_mean(tf.abs(out)) + v1.losses.mean_squared_error(labels, out, reduction=v1.losses.Reduction.SUM)
        return spec(mode, loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_global_step()))

    with pytest.raises(NotSupportedError, match="declares its loss as a sum, and 'Mean'"):
        train(model_fn, tmp_path, 2)


def test_wide_and_deep_trains_with_both_of_its_optimizers(tmp_path: Path) -> None:
    """A canned Estimator of TensorFlow 1, whose loss is a sum, with partitioned embeddings and sparse gradients."""
    columns = tf.feature_column
    words = columns.categorical_column_with_identity("words", IDS)
    crossed = columns.crossed_column([words, columns.bucketized_column(columns.numeric_column("first"), [0.0])], 20)

    def make(folder: Path) -> Any:
        config = v1.estimator.RunConfig(model_dir=str(folder), tf_random_seed=1, save_summary_steps=2, log_step_count_steps=1)
        return v1.estimator.DNNLinearCombinedClassifier(
            config=config,
            linear_feature_columns=[words, crossed],
            linear_optimizer=v1.train.FtrlOptimizer(0.05),
            dnn_feature_columns=[columns.numeric_column("x", [3]), columns.embedding_column(words, 4)],
            dnn_optimizer=v1.train.AdagradOptimizer(0.05),
            dnn_hidden_units=[8, 4],
            input_layer_partitioner=v1.fixed_size_partitioner(2),
        )

    def input_fn() -> Any:
        features = {"x": X, "words": WORDS, "first": X[:, :1]}
        return tf.data.Dataset.from_tensor_slices((features, CLASSES)).repeat().batch(12, drop_remainder=True)

    results = {number: train(make(tmp_path / str(number)), tmp_path / str(number), number, input_fn) for number in (1, 3)}
    np.testing.assert_allclose(results[3][0], results[1][0], rtol=TOLERANCE)
    assert_close(results[3][1], results[1][1], 1e-5)
