"""MetricSpec: which prediction, label and weight a metric is computed from."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.util.deprecation import deprecated

# What a metric's arguments may be called, the name that they should have first.
_LABELS = ("labels", "label", "targets", "target")
_PREDICTIONS = ("predictions", "prediction", "logits", "logit")
_WEIGHTS = ("weights", "weight")


class MetricSpec:
    """A metric and the keys of what it is computed from; use ``EstimatorSpec.eval_metric_ops``.

    Args:
        metric_fn: of labels, predictions and perhaps weights, by whatever of the usual names.
        prediction_key: which prediction; None where there is only one.
        label_key: likewise.
        weight_key: which feature is the weights.

    Raises:
        ValueError: ``metric_fn`` has no argument for a key that is given, or several.
    """

    @deprecated(None, "Use tf.estimator.EstimatorSpec.eval_metric_ops.")
    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self.prediction_key, self.label_key, self.weight_key = prediction_key, label_key, weight_key
        self._name = _name(metric_fn)
        self.metric_fn = _by_usual_names(metric_fn, self._name, label_key is not None, weight_key is not None)

    def __str__(self) -> str:
        return (
            f"MetricSpec(metric_fn={self._name}, prediction_key={self.prediction_key}, label_key={self.label_key}, "
            f"weight_key={self.weight_key})"
        )

    def create_metric_ops(self, inputs: Mapping[str, Any], labels: Any, predictions: Any) -> Any:
        """What the metric returns for these.

        Args:
            inputs: features by name.
            labels: a tensor, or tensors by key.
            predictions: likewise.

        Raises:
            ValueError: a key is missing where there are several tensors, or given where there is one.
            KeyError: a key that is not there.
        """
        return self.metric_fn(
            labels=_chosen("label", labels, self.label_key),
            predictions=_chosen("prediction", predictions, self.prediction_key),
            weights=inputs[self.weight_key] if self.weight_key else None,
        )


def _chosen(what: str, values: Any, key: str | None) -> Any:
    if key:
        if not isinstance(values, dict):
            raise ValueError(f"MetricSpec with {what}_key specified requires {what}s dict, got {values}.")
        if key not in values:
            raise KeyError(f"Key '{key}' missing from {values.keys()}.")
        return values[key]
    if not isinstance(values, dict):
        return values
    if len(values) != 1:
        raise ValueError(
            f"MetricSpec without specified {what}_key requires {what}s tensor or single element dict, got {values}"
        )
    return next(iter(values.values()))


def _by_usual_names(metric_fn: Callable[..., Any], name: str, labels_required: bool, weights_required: bool) -> Any:
    arguments = _arguments(metric_fn)
    labels_name = _matching(name, arguments, _LABELS, labels_required)
    predictions_name = _matching(name, arguments, _PREDICTIONS)
    weights_name = _matching(name, arguments, _WEIGHTS, weights_required)

    def adapted(labels: Any = None, predictions: Any = None, weights: Any = None) -> Any:
        positional = []
        named = {weights_name: weights} if weights is not None else {}
        if predictions_name:
            named[predictions_name] = predictions
        else:
            positional.append(predictions)
        if labels_name and not predictions_name and arguments[0] == labels_name:
            positional.insert(0, labels)
        elif labels_name:
            named[labels_name] = labels
        return metric_fn(*positional, **named)

    return adapted


def _matching(function: str, arguments: tuple[str, ...], names: tuple[str, ...], required: bool = False) -> str:
    found = [name for name in names if name in arguments]
    if len(found) > 1:
        raise ValueError(f"Ambiguous arguments {found}, must provide only one of {names}.")
    if required and not found:
        raise ValueError(f"{names} missing from {function}({arguments}).")
    if found and found[0] != names[0]:
        tf.logging.warning("Canonical arg %s missing from %s(%s), using %s.", names[0], function, arguments, found[0])
    return found[0] if found else ""


def _arguments(function: Any) -> tuple[str, ...]:
    if isinstance(function, functools.partial):
        return tuple(name for name in _arguments(function.func) if name not in function.keywords)
    return tuple(inspect.getfullargspec(inspect.unwrap(function)).args)


def _name(function: Any) -> str:
    named = function.func if isinstance(function, functools.partial) else function
    return str(getattr(named, "__name__", function))
