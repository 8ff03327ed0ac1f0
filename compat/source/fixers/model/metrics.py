"""Metrics of TensorFlow 1 as Keras metrics that add up the same numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import (
    Statement,
    assigned,
    assigned_target,
    assigned_value,
    reads_and_writes,
)
from estimator_bridge.compat.source.fixers.script import Script, arguments, code, parsed, simple_name, with_values

PREFIX = "tensorflow.metrics."
_MOST = 5  # names that other names were given
_WHOLE = tuple(f"tensorflow.{name}" for name in ("argmax", "argmin", "arg_max", "arg_min", "to_int32", "to_int64"))
_BOTH = ("labels", "predictions", "weights")


@dataclasses.dataclass(frozen=True)
class Row:
    """A metric.

    Attributes:
        keras: Call that makes the Keras metric, with NAME for its name, and TensorFlow 1's parameters by their names.
        update: Arguments of ``update_state``, by the names of TensorFlow 1's parameters.
        parameters: TensorFlow 1's first parameters in their order.
        defaults: Parameters that need not be given, and their values.
    """

    keras: str
    update: str = "{labels}, {predictions}"
    parameters: tuple[str, ...] = _BOTH
    defaults: dict[str, str] = dataclasses.field(default_factory=dict)


ROWS = {
    "accuracy": Row("Accuracy(name=NAME)"),
    "mean": Row("Mean(name=NAME)", "{values}", ("values", "weights")),
    "mean_squared_error": Row(
        "Mean(name=NAME)", "tf.math.squared_difference(tf.reshape({labels}, tf.shape({predictions})), {predictions})"
    ),
    "mean_absolute_error": Row("Mean(name=NAME)", "tf.abs(tf.reshape({labels}, tf.shape({predictions})) - {predictions})"),
    "root_mean_squared_error": Row("RootMeanSquaredError(name=NAME)"),
    "auc": Row(
        "AUC(num_thresholds={num_thresholds}, name=NAME)",
        parameters=(*_BOTH, "num_thresholds"),
        defaults={"num_thresholds": "200"},
    ),
    "mean_iou": Row(
        "MeanIoU(num_classes={num_classes}, name=NAME)", parameters=("labels", "predictions", "num_classes", "weights")
    ),
    **{
        snake: Row(f"{keras}(name=NAME)", "tf.cast({labels}, tf.bool), tf.cast({predictions}, tf.bool)")
        for snake, keras in (
            ("precision", "Precision"),
            ("recall", "Recall"),
            ("true_positives", "TruePositives"),
            ("true_negatives", "TrueNegatives"),
            ("false_positives", "FalsePositives"),
            ("false_negatives", "FalseNegatives"),
        )
    },
}
"""Functions below ``tf.metrics``. Keras' own mean squared error would take the mean of each row first.
Like TensorFlow 1, the updates take labels of shape [N] for predictions of shape [N, 1]."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric of a model.

    Attributes:
        name: Name in the results of an evaluation.
        made: Expression that makes the Keras metric; its value, if it is computed from those of others.
        update: Arguments of its ``update_state``; empty if its value is computed.
        condition: Condition on hyperparameters under which the model has the metric; empty for always.
    """

    name: str
    made: str
    update: str = ""
    condition: str = ""

    @property
    def entry(self) -> str:
        """Text of the entry in a dict of metrics, or of values, by their names."""
        own = f'"{self.name}": {self.made}'
        return f"**({{{own}}} if {self.condition} else {{}})" if self.condition else own


def made(entry: cst.BaseExpression, statements: Sequence[Statement]) -> cst.BaseExpression:
    """Returns the call behind an entry of ``eval_metric_ops``: itself, or what the names of a value and its update were assigned.

    Args:
        entry: Call, name, or pair of names.
        statements: Statements of the model function.
    """
    if isinstance(entry, cst.Name):
        return assigned(entry.value, statements) or entry
    if isinstance(entry, cst.Tuple | cst.List):
        names = [simple_name(one.value) for one in entry.elements]
        for statement in reversed(statements):
            value, target = assigned_value(statement), assigned_target(statement)
            if isinstance(target, cst.Tuple | cst.List) and [simple_name(one.value) for one in target.elements] == names:
                return value or entry
            if {*names} & reads_and_writes(statement)[1]:
                break
    return entry


class _Computed(cst.CSTTransformer):
    """Puts the results of Keras metrics in the place of ``made[0]``, of what a function below ``tf.metrics`` made."""

    def __init__(self, results: Mapping[str, str]) -> None:
        super().__init__()
        self._results = results

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        name = simple_name(original_node.value)
        is_value = name in self._results and code(original_node).replace(" ", "").endswith("[0]")
        return parsed(self._results[name]) if is_value else updated_node


def computed(
    script: Script, name: str, value: cst.BaseExpression, statements: Sequence[Statement], keys: dict[str, str]
) -> tuple[Metric, dict[str, cst.BaseExpression]]:
    """Returns a metric that is computed from the values of others, e.g., F1 from precision and recall, and calls of those without a key.

    Args:
        script: Script around the value.
        name: Key of the entry in ``eval_metric_ops``.
        value: First part of the entry's pair.
        statements: Statements of the model function.
        keys: Source of a metric's call -> its key; those without one are added.
    """
    made: dict[str, str] = {}
    values: dict[str, cst.BaseExpression] = {}
    own: dict[str, cst.BaseExpression] = {}
    for statement in statements:
        call, target = assigned_value(statement), assigned_target(statement)
        if call is None or not script.called(call).startswith(PREFIX):
            continue
        first = target.elements[0].value if isinstance(target, cst.Tuple | cst.List) else target
        if code(call) not in keys and simple_name(first) in _names(script, value, statements):
            free = simple_name(first)
            while free in keys.values():
                free += "_"
            own[free] = call
            keys[code(call)] = free
        result = f'self.eval_metrics["{keys.get(code(call), "")}"].result()'
        if first is target:
            made[simple_name(first)] = result
        else:
            values[simple_name(first)] = parsed(result)
    for _ in range(_MOST):
        plain = {one: assigned(one, statements) for one in reads_and_writes(value)[0] - {*made, *values}}
        value = with_values(value, {one: given for one, given in plain.items() if given is not None})
    changed = value.visit(_Computed(made))
    assert isinstance(changed, cst.BaseExpression)
    return Metric(name, code(with_values(changed, values))), own


def _names(script: Script, value: cst.BaseExpression, statements: Sequence[Statement]) -> set[str]:
    """Returns the names that a value reads, and those that the names among them were computed from."""
    found = set(reads_and_writes(value)[0])
    for _ in range(_MOST):
        for one in [*found]:
            given = assigned(one, statements)
            if given is not None and not script.called(given).startswith(PREFIX):
                found |= reads_and_writes(given)[0]
    return found


def metric(script: Script, name: str, call: cst.BaseExpression, statements: Sequence[Statement] = ()) -> Metric:
    """Returns the Keras metric for an entry of ``eval_metric_ops``.

    Args:
        script: Script around the call.
        name: Key of the entry.
        call: Call of a function below ``tf.metrics``.
        statements: Statements before the call.

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
    values = {**row.defaults, **{parameter: code(value) for parameter, value in given.items()}}
    if short == "accuracy" and not _is_whole(script, given["predictions"], statements):
        values["predictions"] = f"tf.cast({values['predictions']}, {values['labels']}.dtype)"  # as TensorFlow 1 does
    update = row.update.format_map(values)
    if "weights" in values:
        update += f", sample_weight={values['weights']}"
    keras = row.keras.format_map(values).replace("NAME", repr(name).replace("'", '"'))
    return Metric(name, f"tf_keras.metrics.{keras}", update)


def _is_whole(script: Script, value: cst.BaseExpression | None, statements: Sequence[Statement]) -> bool:
    """Returns True for an expression whose values are whole numbers, as far as the statements before it tell."""
    for _ in range(_MOST):
        key = code(value.slice[0].slice).strip("\"'") if isinstance(value, cst.Subscript) else None
        given = assigned(simple_name(value.value if isinstance(value, cst.Subscript) else value), statements)
        if key is not None:
            entries = [one for one in given.elements if isinstance(one, cst.DictElement)] if isinstance(given, cst.Dict) else []
            given = next((one.value for one in entries if code(one.key).strip("\"'") == key), None)
        value = given or value
    kinds = (
        [code(one.value) for one in value.args]
        if isinstance(value, cst.Call) and script.called(value) == "tensorflow.cast"
        else []
    )
    return script.called(value) in _WHOLE or any("int" in kind.rpartition(".")[2] for kind in kinds[1:])


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
