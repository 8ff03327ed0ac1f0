"""Metrics of TensorFlow 1 as Keras metrics that add up the same numbers."""

from __future__ import annotations

import dataclasses

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import assigned
from estimator_bridge.compat.source.fixers.script import Script, arguments, code

PREFIX = "tensorflow.metrics."
_BOTH = ("labels", "predictions", "weights")


@dataclasses.dataclass(frozen=True)
class Row:
    """A metric.

    Attributes:
        keras: Call that makes the Keras metric, with NAME for its name.
        update: Arguments of ``update_state``, by the names of TensorFlow 1's parameters.
        parameters: TensorFlow 1's parameters in their order that ``update`` has.
    """

    keras: str
    update: str = "{labels}, {predictions}"
    parameters: tuple[str, ...] = _BOTH


ROWS = {
    "accuracy": Row("Accuracy(name=NAME)"),
    "mean": Row("Mean(name=NAME)", "{values}", ("values", "weights")),
    "mean_squared_error": Row(
        "Mean(name=NAME)", "tf.math.squared_difference(tf.reshape({labels}, tf.shape({predictions})), {predictions})"
    ),
    "mean_absolute_error": Row("Mean(name=NAME)", "tf.abs(tf.reshape({labels}, tf.shape({predictions})) - {predictions})"),
    "root_mean_squared_error": Row("RootMeanSquaredError(name=NAME)"),
    "auc": Row("AUC(num_thresholds=200, name=NAME)"),
    "precision": Row("Precision(name=NAME)", "tf.cast({labels}, tf.bool), tf.cast({predictions}, tf.bool)"),
    "recall": Row("Recall(name=NAME)", "tf.cast({labels}, tf.bool), tf.cast({predictions}, tf.bool)"),
}
"""Functions below ``tf.metrics``. Keras' own mean squared error would take the mean of each row first.
Like TensorFlow 1, the updates take labels of shape [N] for predictions of shape [N, 1]."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric of a model.

    Attributes:
        name: Name in the results of an evaluation.
        made: Expression that makes the Keras metric.
        update: Arguments of its ``update_state``.
    """

    name: str
    made: str
    update: str


def metric(script: Script, name: str, call: cst.BaseExpression) -> Metric:
    """Returns the Keras metric for an entry of ``eval_metric_ops``.

    Args:
        script: Script around the call.
        name: Key of the entry.
        call: Call of a function below ``tf.metrics``.

    Raises:
        UnconvertibleError: It is no such call, or the table has no row for it.
    """
    function = script.called(call)
    short = function.removeprefix(PREFIX)
    row = ROWS.get(short) if function.startswith(PREFIX) else None
    given = (
        arguments(call, (*row.parameters, "metrics_collections", "updates_collections", "name"))
        if row and isinstance(call, cst.Call)
        else None
    )
    if row is None or given is None or not given.keys() <= {*row.parameters, "name"}:
        raise UnconvertibleError(
            call, f"the metric {name!r}", "there is no row for this call; write it as a tf_keras.metrics.Metric"
        )
    values = {parameter: code(value) for parameter, value in given.items()}
    update = row.update.format_map(values)
    if "weights" in values:
        update += f", sample_weight={values['weights']}"
    return Metric(name, "tf_keras.metrics." + row.keras.replace("NAME", repr(name).replace("'", '"')), update)


def added(script: Script, function: cst.FunctionDef) -> tuple[cst.Dict, list[Metric]]:
    """Returns the dict that a function for ``add_metrics`` returns, and a metric for each of its entries.

    Args:
        script: Script around the function.
        function: Function of labels and predictions.

    Raises:
        UnconvertibleError: It has other arguments, or its dict is not written as one.
    """
    (*body, last) = function.body.body
    returned = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    value = returned.value if isinstance(returned, cst.Return) else None
    if isinstance(value, cst.Name):
        value = assigned(value.value, [one for one in body if isinstance(one, cst.SimpleStatementLine)])
    parameters = {one.name.value for one in function.params.params}
    entries = [one for one in value.elements if isinstance(one, cst.DictElement)] if isinstance(value, cst.Dict) else []
    keys = [str(one.key.evaluated_value) for one in entries if isinstance(one.key, cst.SimpleString)]
    if not isinstance(value, cst.Dict) or len(keys) != len(value.elements) or parameters != {"labels", "predictions"}:
        message = "it does not return one dict of metrics of labels and predictions; add Keras metrics to the model"
        raise UnconvertibleError(function, function.name.value, message)
    return value, [metric(script, key, one.value) for key, one in zip(keys, entries, strict=True)]
