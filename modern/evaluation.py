"""Estimator.evaluate and Estimator.predict on the modern path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern import model_graph
from estimator_bridge.modern.carving import Fragment, Tensor, is_source, upstream
from estimator_bridge.modern.inputs import read_ahead
from estimator_bridge.modern.model_graph import ModelGraph, operation, v1
from estimator_bridge.modern.transplant import initialise_tables
from estimator_bridge.modern.variables import VariableStore


def evaluate(
    estimator: Any, input_fn: Callable[..., Any], *, steps: int | None, hooks: Sequence[Any], checkpoint_path: str | None
) -> dict[str, Any]:
    """Runs the metrics of the model_fn's EVAL graph over the input, with the variables of a checkpoint.

    Args:
        estimator: whose model_fn, config and model_dir to use.
        input_fn, steps, hooks, checkpoint_path: as ``Estimator.evaluate`` takes them.

    Returns:
        Metric name -> value, with ``loss`` (the mean over batches) and ``global_step``.

    Raises:
        NotSupportedError: for session hooks.
    """
    model = model_graph.build(estimator, input_fn, model_graph.EVAL, checkpoint_path)
    _refuse_hooks([*hooks, *model.spec.evaluation_hooks])
    with model.graph.as_default():
        metrics = dict(model.spec.eval_metric_ops)
        _refuse_reserved(metrics)
        metrics["loss"] = v1.metrics.mean(model.spec.loss)
    store = _store(model)
    updates = [operation(update) for _, update in metrics.values()]
    update = Fragment.cut(upstream(updates, is_source), [])
    model.check_fed(update.inputs)
    _run_over(model, update, store, steps)
    return _results(metrics, model, store)


def predict(
    estimator: Any, input_fn: Callable[..., Any], *, predict_keys: Any, hooks: Sequence[Any], checkpoint_path: str | None
) -> Iterator[Any]:
    """Yields one batch of predictions after the other: a dict of arrays, or one array.

    Args:
        estimator: whose model_fn, config and model_dir to use.
        input_fn, predict_keys, hooks, checkpoint_path: as ``Estimator.predict`` takes them.

    Raises:
        NotSupportedError: for session hooks.
    """
    model = model_graph.build(estimator, input_fn, model_graph.PREDICT, checkpoint_path)
    _refuse_hooks([*hooks, *model.spec.prediction_hooks])
    predictions = estimator._extract_keys(model.spec.predictions, predict_keys)
    outputs = tf.nest.flatten(predictions)
    store = _store(model)
    fragment = Fragment.cut(upstream([tensor.op for tensor in outputs], is_source), outputs)
    model.check_fed(fragment.inputs)
    call = store.function(fragment)
    names = [placeholder.name for placeholder in model.batch]
    for batch in read_ahead(model.pipeline.dataset()):
        known = dict(zip(names, batch, strict=True))
        values = [value.numpy() for value in call([known[tensor.name] for tensor in fragment.inputs])]
        yield tf.nest.pack_sequence_as(predictions, values)


def _store(model: ModelGraph) -> VariableStore:
    store = VariableStore(model.variables(), model.initial_values())
    initialise_tables(model)
    return store


def _run_over(model: ModelGraph, update: Fragment, store: VariableStore, steps: int | None) -> None:
    call = store.function(update)
    names = [placeholder.name for placeholder in model.batch]
    dataset = model.pipeline.dataset()
    dataset = dataset if steps is None else dataset.take(steps)

    @tf.function
    def run_all(batches: tf.data.Dataset) -> None:
        for batch in batches:
            known = dict(zip(names, batch))  # noqa: B905 -- autograph knows no strict=
            call([known[tensor.name] for tensor in update.inputs])

    run_all(read_ahead(dataset))


def _results(metrics: Mapping[str, Any], model: ModelGraph, store: VariableStore) -> dict[str, Any]:
    values: list[Tensor] = [tf.nest.flatten(value)[0] for value, _ in metrics.values()]
    fragment = Fragment.cut(upstream([tensor.op for tensor in values], is_source), values)
    if fragment.inputs:
        raise NotSupportedError(
            f"The value of a metric depends on the batch ({fragment.inputs[0].name!r}).",
            expected="(value, update) pairs whose value reads variables alone, as tf.metrics makes them",
            fix="Use --path legacy for this script.",
        )
    results = {name: value.numpy() for name, value in zip(metrics, store.function(fragment)([]), strict=True)}
    results["global_step"] = store[model.global_step].numpy()
    return {name: value[()] if isinstance(value, np.ndarray) and not value.shape else value for name, value in results.items()}


def _refuse_hooks(hooks: Sequence[Any]) -> None:
    if hooks:
        raise NotSupportedError(
            f"The session hook {type(hooks[0]).__qualname__} cannot run in evaluation or prediction on the modern path yet.",
            expected="no hooks",
            fix="Drop the hook, or use --path legacy.",
        )


def _refuse_reserved(metrics: Mapping[str, Any]) -> None:
    for name in ("loss", "global_step"):
        if name in metrics:
            raise ValueError(f'Metric with name "{name}" is not allowed, because Estimator defines a metric with that name.')
