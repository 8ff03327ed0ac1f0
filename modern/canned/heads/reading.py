"""Heads of tf.estimator and their Keras layers: one row a class of tensorflow-estimator 2.15.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.heads.base import Head
from estimator_bridge.modern.canned.heads.classification import BinaryHead, MultiClassHead, MultiLabelHead
from estimator_bridge.modern.canned.heads.composed import MultiHead, SequentialHead
from estimator_bridge.modern.canned.heads.regression import RegressionHead

Arguments = dict[str, Any]


def layer(head: Any) -> Head:
    """The Keras layer for a head of ``tf.estimator`` or ``tf.compat.v1.estimator``.

    Raises:
        NotSupportedError: for heads of own classes.
    """
    name = type(head).__name__
    if name not in HEADS or not type(head).__module__.startswith("tensorflow_estimator."):
        raise NotSupportedError(
            f"The head {type(head).__qualname__} has no Keras layer.",
            expected="one of " + ", ".join(sorted(row.lstrip("_") for row in HEADS)),
            received=f"{type(head).__module__}.{type(head).__qualname__}",
            fix="Use one of tf.estimator's heads, or run the Estimator with `estimator-bridge run --path modern`.",
        )
    return HEADS[name](head)


def _common(head: Any) -> Arguments:
    column = head._weight_column
    return {
        "units": head.logits_dimension,
        "reduction": head._loss_reduction,
        "weight_column": getattr(column, "key", column) if getattr(column, "normalizer_fn", None) is None else column,
        "loss_fn": head._loss_fn,
        "title": head.name,
        "exact": type(head).__name__.startswith("_"),
    }


def _binary(head: Any) -> Head:
    return BinaryHead(**_common(head), vocabulary=head._label_vocabulary, thresholds=head._thresholds)


def _multi_class(head: Any) -> Head:
    return MultiClassHead(**_common(head), vocabulary=head._label_vocabulary)


def _multi_label(head: Any) -> Head:
    judged = head._classes_for_class_based_metrics
    return MultiLabelHead(**_common(head), vocabulary=head._label_vocabulary, thresholds=head._thresholds, judged=judged)


def _regression(head: Any) -> Head:
    return RegressionHead(**_common(head), inverse_link=head._inverse_link_fn)


def _logistic(head: Any) -> Head:
    return RegressionHead(**_common(head) | {"loss_fn": tf.nn.sigmoid_cross_entropy_with_logits}, inverse_link=tf.sigmoid)


def _poisson(head: Any) -> Head:
    full: bool = head._compute_full_loss

    def loss(labels: Any, logits: Any) -> Any:
        return tf.nn.log_poisson_loss(labels, logits, compute_full_loss=full)

    return RegressionHead(**_common(head) | {"loss_fn": loss}, inverse_link=tf.exp)


def _multi(head: Any) -> Head:
    heads = [layer(part) for part in head._heads]
    return MultiHead(heads, head._head_weights, units=head.logits_dimension, reduction=head.loss_reduction)


def _sequential(head: Any) -> Head:
    inner = layer(head.static_head)
    keys = head._feature_columns
    return SequentialHead(inner, head.input_sequence_mask_key, keys, units=inner.units, reduction=inner.reduction)


HEADS: Mapping[str, Callable[[Any], Head]] = {
    "BinaryClassHead": _binary,
    "_BinaryLogisticHeadWithSigmoidCrossEntropyLoss": _binary,
    "MultiClassHead": _multi_class,
    "_MultiClassHeadWithSoftmaxCrossEntropyLoss": _multi_class,
    "MultiLabelHead": _multi_label,
    "RegressionHead": _regression,
    "LogisticRegressionHead": _logistic,
    "PoissonRegressionHead": _poisson,
    "_RegressionHeadWithMeanSquaredErrorLoss": _regression,
    "MultiHead": _multi,
    "SequentialHeadWrapper": _sequential,
}
