"""Estimator.evaluate and Estimator.predict on the modern path."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.training import evaluation as tf_evaluation

from estimator_bridge.modern.callbacks.progress import show_batches
from estimator_bridge.modern.evaluation.batch_loop import for_each_batch
from estimator_bridge.modern.evaluation.hooked_batches import begin, hooked_batches
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.fragments import Fragment, is_source, upstream
from estimator_bridge.modern.graph.input_pipeline import releasing
from estimator_bridge.modern.graph.model_graph import ModelGraph, metric_values, operation, v1
from estimator_bridge.modern.graph.variables import VariableStore
from estimator_bridge.modern.step.transplant import initialise_tables
from estimator_bridge.runtime.estimator_calls import EvaluateCall, PredictCall


@releasing
def evaluate(estimator: Any, call: EvaluateCall) -> tuple[dict[str, Any], Any]:
    """Runs the metrics of the model_fn's EVAL graph over the input, with the variables of a checkpoint.

    Args:
        estimator: Estimator with the model_fn, config and model_dir.
        call: Arguments of ``Estimator.evaluate``; its checkpoint_path names the variables' values, None for initial ones.

    Returns:
        Metric name -> value, with ``loss`` (the mean over batches) and ``global_step``; and the graph.

    Raises:
        NotSupportedError: A session hook does more than reading.
    """
    model = model_graph.build(estimator, call.input_fn, model_graph.EVAL, call.checkpoint_path)
    with model.graph.as_default():
        metrics = dict(model.spec.eval_metric_ops)
        _refuse_reserved(metrics)
        metrics["loss"] = v1.metrics.mean(model.spec.loss)
    updates = [operation(update) for update in (*(update for _, update in metrics.values()), *model.every_batch)]
    if call.hooks or model.spec.evaluation_hooks:
        in_order = [
            *(call.hooks or ()),
            *estimator._convert_eval_steps_to_hooks(call.steps),
            *model.spec.evaluation_hooks,
        ]
        store = _run_hooked(model, in_order, updates)
    else:
        store = _store(model)
        _run_over(model, Fragment.cut(upstream(updates, is_source), []), store, call.steps)
    return _results(metrics, model, store), model.graph


def predict(estimator: Any, call: PredictCall) -> Iterator[Any]:
    """Yields the predictions batch by batch, each a dict of arrays or one array.

    Args:
        estimator: Estimator with the model_fn, config and model_dir.
        call: Arguments of ``Estimator.predict``; its checkpoint_path names the variables' values, None for initial ones.

    Raises:
        NotSupportedError: A session hook does more than reading.
    """
    model = model_graph.build(estimator, call.input_fn, model_graph.PREDICT, call.checkpoint_path)
    predictions = estimator._extract_keys(model.spec.predictions, call.predict_keys)
    outputs = tf.nest.flatten(predictions)
    run = begin([*(call.hooks or ()), *(model.spec.prediction_hooks or ())], model, predictions)
    for values in hooked_batches(model, _store(model), run, [*outputs, *model.every_batch]):
        yield tf.nest.pack_sequence_as(predictions, [values[tensor.name] for tensor in outputs])


def _store(model: ModelGraph) -> VariableStore:
    store = VariableStore(model.variables(), model.initial_values())
    initialise_tables(model)
    return store


def _run_hooked(model: ModelGraph, hooks: Sequence[Any], updates: Sequence[Any]) -> VariableStore:
    """Evaluates under hooks, with TF1's counter of batches, which some hooks read."""
    with model.graph.as_default():
        counted = v1.assign_add(tf_evaluation._get_or_create_eval_step(), 1, use_locking=True)
        elements = [tf.group(*updates), counted]
        done = tf_evaluation._get_latest_eval_step_value(elements)
    for hook in hooks:
        if hasattr(hook, "_set_evals_completed_tensor"):
            hook._set_evals_completed_tensor(done)
    run = begin(hooks, model, elements)
    store = _store(model)
    collections.deque(hooked_batches(model, store, run, [operation(element) for element in elements]), maxlen=0)
    return store


def _run_over(model: ModelGraph, update: Fragment, store: VariableStore, steps: int | None) -> None:
    run = model.batch_function(update, store)
    dataset = model.pipeline.dataset()
    with show_batches(steps) as tell:
        for_each_batch(dataset if steps is None else dataset.take(steps), run, tell)


def _results(metrics: Mapping[str, Any], model: ModelGraph, store: VariableStore) -> dict[str, Any]:
    fragment = metric_values([tf.nest.flatten(value)[0] for value, _ in metrics.values()])
    results = {name: value.numpy() for name, value in zip(metrics, store.function(fragment)([]), strict=True)}
    results["global_step"] = store[model.global_step].numpy()
    return {name: value[()] if isinstance(value, np.ndarray) and not value.shape else value for name, value in results.items()}


def _refuse_reserved(metrics: Mapping[str, Any]) -> None:
    for name in ("loss", "global_step"):
        if name in metrics:
            raise ValueError(f'Metric with name "{name}" is not allowed, because Estimator defines a metric with that name.')
