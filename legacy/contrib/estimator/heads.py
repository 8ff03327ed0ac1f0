"""Heads of one output: those of the canned Estimators, their losses averaged over the batch by default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow_estimator.python.estimator.canned import head as canned

_MEAN = tf.losses.Reduction.SUM_OVER_BATCH_SIZE


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """A head for one of more than two classes, with softmax cross entropy; logits are of shape [batch_size, n_classes]."""
    return canned._multi_class_head_with_softmax_cross_entropy_loss(
        n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """A head for two classes, with sigmoid cross entropy; logits are of shape [batch_size, 1]."""
    return canned._binary_logistic_head_with_sigmoid_cross_entropy_loss(
        weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name
    )


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    loss_fn: Callable[..., Any] | None = None,
    inverse_link_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> Any:
    """A head for numbers, with mean squared error; logits are of shape [batch_size, label_dimension]."""
    return canned._regression_head(weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> Any:
    """A head for counts, whose logarithm the logits are.

    Args:
        compute_full_loss: with the term that depends on the labels alone.
    """

    def loss(labels: Any, logits: Any) -> Any:
        return tf.nn.log_poisson_loss(labels, logits, compute_full_loss)

    return regression_head(weight_column, label_dimension, loss_reduction, loss, tf.exp, name)


def logistic_regression_head(weight_column: Any = None, loss_reduction: str = _MEAN, name: str | None = None) -> Any:
    """A head for numbers from 0 to 1, with sigmoid cross entropy."""

    def loss(labels: Any, logits: Any) -> Any:
        in_range = canned._assert_range(labels, n_classes=2, message="Labels must be in range [0, 1]")
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=in_range, logits=logits)

    return regression_head(weight_column, 1, loss_reduction, loss, tf.sigmoid, name)
