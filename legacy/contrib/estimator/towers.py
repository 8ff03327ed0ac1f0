"""replicate_model_fn: one model on several GPUs of a machine, in one graph; ``tf.distribute.MirroredStrategy`` followed."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.client.device_lib import list_local_devices
from tensorflow.python.util.deprecation import deprecated

from estimator_bridge.legacy.contrib.estimator.tower_optimizer import TowerOptimizer, Towers, building, sum_on_device

__all__ = ["TowerOptimizer", "replicate_model_fn"]

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
_Export = tf.estimator.export


@deprecated("2018-05-31", "Please use `tf.contrib.distribute.MirroredStrategy` instead.")
def replicate_model_fn(
    model_fn: Callable[..., Any],
    loss_reduction: str = tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
    devices: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """A model_fn that splits each batch over devices.

    Args:
        model_fn: whose optimizer is a TowerOptimizer.
        loss_reduction: how its loss sums up the examples: unless it is SUM, the towers' losses are averaged.
        devices: all GPUs, or else the CPU, unless given. Variables are on the CPU, or on the only GPU.

    Raises:
        ValueError: ``loss_reduction`` is NONE; when the model is built: a batch that cannot be split evenly, an optimizer that is
            no TowerOptimizer, or towers that are not alike.
    """
    if loss_reduction == tf.losses.Reduction.NONE:
        raise ValueError(f"Tower losses need to be reduced in some way, yet {loss_reduction} reduction is specified.")
    places = list(devices or _local("GPU") or _local("CPU"))
    home = places[0] if len(places) == 1 and "GPU" in places[0].upper() else "/CPU:0"

    def one_device_model_fn(features: Any, labels: Any, mode: str, params: Any = None, config: Any = None) -> Any:
        shards = [features], None if labels is None else [labels]
        return _towers(model_fn, shards, mode, _wanted(model_fn, params, config), places, home, loss_reduction)[0]

    def replicated_model_fn(features: Any, labels: Any, mode: str, params: Any = None, config: Any = None) -> Any:
        with tf.name_scope("split_inputs"), tf.device(home):
            shards = _split(features, len(places)), None if labels is None else _split(labels, len(places))
        specs = _towers(model_fn, shards, mode, _wanted(model_fn, params, config), places, home, loss_reduction)
        return _MERGERS[mode](specs, home)

    return one_device_model_fn if len(places) == 1 else replicated_model_fn


def _local(kind: str) -> list[str]:
    return [device.name for device in list_local_devices() if device.device_type == kind]


def _wanted(model_fn: Callable[..., Any], params: Any, config: Any) -> dict[str, Any]:
    offered = {"params": params, "config": config}
    return {name: copy.deepcopy(value) for name, value in offered.items() if name in inspect.signature(model_fn).parameters}


def _split(values: Any, number: int) -> list[Any]:
    if not isinstance(values, dict):
        return _split_tensor(values, number)
    parts = {name: _split_tensor(tensor, number) for name, tensor in values.items()}
    return [{name: shards[index] for name, shards in parts.items()} for index in range(number)]


def _split_tensor(tensor: Any, number: int) -> list[Any]:
    if isinstance(tensor, tf.SparseTensor):
        return list(tf.sparse.split(sp_input=tensor, num_split=number, axis=0))
    batch_size = tf.convert_to_tensor(tensor).shape[0].value
    if batch_size is None or batch_size % number:
        raise ValueError(f"Batch size {batch_size} needs to be divisible by the number of GPUs, which is {number}.")
    return list(tf.split(tensor, number))


def _towers(
    model_fn: Callable[..., Any],
    shards: tuple[list[Any], list[Any] | None],
    mode: str,
    options: dict[str, Any],
    devices: list[str],
    home: str,
    loss_reduction: str,
) -> list[Any]:
    features, labels = shards
    specs = []
    with building(Towers(len(devices), loss_reduction)) as towers:
        for index, device in enumerate(devices):
            with (
                tf.variable_scope("", reuse=index > 0) as variable_scope,
                tf.name_scope(f"tower_{index}" if index else "") as name_scope,
                tf.device(_placement(device, home)),
            ):
                if not index:
                    towers.scopes = variable_scope, name_scope
                towers.gradients.append([])
                spec = model_fn(features=features[index], labels=labels and labels[index], mode=mode, **options)
                if spec.train_op is not None and len(devices) > 1 and not towers.optimized:
                    raise ValueError(
                        "Please wrap optimizers with TowerOptimizer in order to use replicate_model_fn with multiple `devices`."
                    )
                specs.append(spec._replace(loss=towers.scaled(spec.loss)))
        if len({len(calls) for calls in towers.gradients}) > 1:
            raise ValueError("Each invocation of model_fn was supposed to make the same optimizer calls.")
    return specs


def _placement(device: str, home: str) -> Callable[[Any], str]:
    def place(operation: Any) -> str:
        asked = tf.DeviceSpec.from_string(operation.device or "")
        target = tf.DeviceSpec.from_string(home if operation.type in _VARIABLES else device)
        return str(target.make_merged_spec(asked).to_string())

    return place


def _train(specs: list[Any], home: str) -> Any:
    return specs[-1]._replace(loss=sum_on_device([spec.loss for spec in specs], home, "loss"))


def _eval(specs: list[Any], home: str) -> Any:
    loss = sum_on_device([spec.loss for spec in specs], home, "loss")
    with tf.control_dependencies([update for spec in specs for _, update in spec.eval_metric_ops.values()]):
        gathered = _gather_metric_variables(len(specs))
    metrics = {name: (value, gathered) for name, (value, _) in specs[0].eval_metric_ops.items()}
    return specs[0]._replace(loss=loss, eval_metric_ops=metrics)


def _gather_metric_variables(towers: int) -> Any:
    """Adds each tower's metric variables to those of the first one, and sets them to zero."""
    variables = tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)
    each, rest = divmod(len(variables), towers)
    if rest:
        raise ValueError(
            f"Different `EstimatorSpec.eval_metric_ops` across `model_fn()` calls. Expected {each * towers} local variables, "
            f"but got {len(variables)} instead."
        )
    cleared = []
    for index, first in enumerate(variables[:each]):
        others = variables[index + each :: each]
        with tf.control_dependencies([tf.assign_add(first, tf.add_n(others))]):
            cleared += [tf.assign(other, tf.zeros_like(other)) for other in others]
    return tf.group(*cleared)


def _predict(specs: list[Any], home: str) -> Any:
    with tf.device(home):
        outputs = {name: _joined([spec.export_outputs[name] for spec in specs]) for name in specs[0].export_outputs or {}}
        return specs[0]._replace(predictions=_concatenated([spec.predictions for spec in specs]), export_outputs=outputs)


def _concatenated(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: tf.concat([part[name] for part in parts], axis=0, name=name) for name in parts[0]}


def _joined(outputs: list[Any]) -> Any:
    first = outputs[0]
    if isinstance(first, _Export.RegressionOutput):
        return _Export.RegressionOutput(tf.concat([output.value for output in outputs], axis=0))
    if isinstance(first, _Export.ClassificationOutput):
        scores = first.scores if first.scores is None else tf.concat([output.scores for output in outputs], axis=0)
        classes = first.classes if first.classes is None else tf.stack([output.classes for output in outputs], axis=0)
        return _Export.ClassificationOutput(scores, classes)
    return _Export.PredictOutput(_concatenated([output.outputs for output in outputs]))


_MERGERS = {
    tf.estimator.ModeKeys.TRAIN: _train,
    tf.estimator.ModeKeys.EVAL: _eval,
    tf.estimator.ModeKeys.PREDICT: _predict,
}
