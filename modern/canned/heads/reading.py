"""Heads of tf.estimator and their Keras layers: one row for each class of tensorflow-estimator 2.15.0."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.graph_function import GraphFunction, NotKeptError
from estimator_bridge.modern.canned.heads.base import Head
from estimator_bridge.modern.canned.heads.composed import MultiHead, SequentialHead
from estimator_bridge.modern.canned.heads.single import BinaryHead, MultiClassHead, MultiLabelHead, RegressionHead

Arguments = dict[str, Any]
_PACKAGES = {"tensorflow_estimator.contrib.": "contrib.", "tensorflow_estimator.": ""}


def layer(head: Any) -> Head:
    """Returns the Keras layer for a head of ``tf.estimator``, ``tf.compat.v1.estimator`` or ``tf.contrib.estimator``.

    Raises:
        NotSupportedError: if the head has a custom class or a function that keeps variables.
    """
    kind = type(head)
    # A script's own class may have the same name and compute something else.
    package = next((package for package in _PACKAGES if kind.__module__.startswith(package)), None)
    name = f"{_PACKAGES[package]}{kind.__name__}" if package else ""
    if name not in HEADS:
        raise NotSupportedError(
            f"The head {kind.__qualname__} has no Keras layer.",
            expected="one of " + ", ".join(sorted(row.lstrip("_") for row in HEADS)),
            received=f"{kind.__module__}.{kind.__qualname__}",
            fix="Use one of tf.estimator's heads, or run the Estimator with `estimator-bridge run --path modern`.",
        )
    return HEADS[name](head)


def _common(head: Any, labels: Any = tf.float32) -> Arguments:
    """Returns the arguments of all heads; ``labels`` is the type of a loss_fn's labels."""
    column, loss_fn = head._weight_column, head._loss_fn
    normalizer = getattr(column, "normalizer_fn", None)
    if loss_fn is not None and "features" not in inspect.signature(loss_fn).parameters:
        given = tf.TensorSpec([None, head.logits_dimension if labels == tf.float32 else 1], labels)
        loss_fn = _keep_as_graph(_by_name(loss_fn), [given, tf.TensorSpec([None, head.logits_dimension])], loss_fn)
    return {
        "units": head.logits_dimension,
        "reduction": head._loss_reduction,
        "weight_column": getattr(column, "key", column),
        "weight_normalizer": normalizer and _keep_as_graph(normalizer, [tf.TensorSpec(None, column.dtype)], normalizer),
        "loss_fn": loss_fn,
        "title": head.name,
        "exact": type(head).__name__.startswith("_"),
    }


def _by_name(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda labels, logits: loss_fn(labels=labels, logits=logits)


def _keep_as_graph(function: Callable[..., Any], specs: Sequence[Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function as its graph, so that the model can be saved, or ``otherwise`` if no graph can hold it."""
    try:
        return GraphFunction.of(function, specs, "function of the head")
    except NotKeptError:
        return otherwise


def _binary(head: Any) -> Head:
    return BinaryHead(**_common(head), vocabulary=head._label_vocabulary, thresholds=head._thresholds)


def _multi_class(head: Any) -> Head:
    return MultiClassHead(**_common(head, tf.int64), vocabulary=head._label_vocabulary)


def _multi_label(head: Any) -> Head:
    judged = head._classes_for_class_based_metrics
    return MultiLabelHead(**_common(head), vocabulary=head._label_vocabulary, thresholds=head._thresholds, judged=judged)


def _regression(head: Any) -> Head:
    link = head._inverse_link_fn
    kept = link and _keep_as_graph(link, [tf.TensorSpec([None, head.logits_dimension])], link)
    return RegressionHead(**_common(head), inverse_link=kept)


def _multi(head: Any) -> Head:
    heads = [layer(part) for part in head._heads]
    return MultiHead(heads, head._head_weights or (), units=head.logits_dimension, reduction=head.loss_reduction)


def _sequential(head: Any) -> Head:
    inner = layer(head.static_head)
    keys = head._feature_columns
    return SequentialHead(inner, head.input_sequence_mask_key, keys, units=inner.units, reduction=inner.reduction)


def _contrib_multi(head: Any) -> Head:
    heads = [layer(part) for part in head._heads]
    return MultiHead(heads, head._head_weights or (), units=head.logits_dimension, reduction=heads[0].reduction)


HEADS: Mapping[str, Callable[[Any], Head]] = {
    "BinaryClassHead": _binary,
    "_BinaryLogisticHeadWithSigmoidCrossEntropyLoss": _binary,
    "MultiClassHead": _multi_class,
    "_MultiClassHeadWithSoftmaxCrossEntropyLoss": _multi_class,
    "MultiLabelHead": _multi_label,
    "RegressionHead": _regression,
    "LogisticRegressionHead": _regression,
    "PoissonRegressionHead": _regression,
    "_RegressionHeadWithMeanSquaredErrorLoss": _regression,
    "MultiHead": _multi,
    "SequentialHeadWrapper": _sequential,
    # Of the fetched tf.contrib.estimator; its other heads are those of tensorflow-estimator.
    "contrib._MultiHead": _contrib_multi,
    "contrib._MultiLabelHead": _multi_label,
}
