"""Estimator.evaluate and Estimator.predict on the modern path."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.training import evaluation as tf_evaluation

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.progress import show_batches
from estimator_bridge.modern.evaluation.batch_loop import for_each_batch
from estimator_bridge.modern.evaluation.hooked_batches import begun, hooked_batches
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.fragments import Fragment, Tensor, is_source, upstream
from estimator_bridge.modern.graph.input_pipeline import releasing
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation, v1
from estimator_bridge.modern.graph.variables import VariableStore
from estimator_bridge.modern.step.transplant import initialise_tables


@releasing
def evaluate(
    estimator: Any, input_fn: Callable[..., Any], *, steps: int | None, hooks: Sequence[Any], checkpoint_path: str | None
) -> tuple[dict[str, Any], Any]:
    """Runs the metrics of the model_fn's EVAL graph over the input, with the variables of a checkpoint.

    Args:
        estimator: whose model_fn, config and model_dir to use.
        input_fn, steps, hooks, checkpoint_path: as ``Estimator.evaluate`` takes them.

    Returns:
        Metric name -> value, with ``loss`` (the mean over batches) and ``global_step``; and the graph.

    Raises:
        NotSupportedError: for session hooks that do more than reading.
    """
    model = model_graph.build(estimator, input_fn, model_graph.EVAL, checkpoint_path)
    with model.graph.as_default():
        metrics = dict(model.spec.eval_metric_ops)
        _refuse_reserved(metrics)
        metrics["loss"] = v1.metrics.mean(model.spec.loss)
    updates = [operation(update) for update in (*(update for _, update in metrics.values()), *model.every_batch)]
    if hooks or model.spec.evaluation_hooks:
        in_order = [*hooks, *estimator._convert_eval_steps_to_hooks(steps), *model.spec.evaluation_hooks]
        store = _run_hooked(model, in_order, updates)
    else:
        store = _store(model)
        update = Fragment.cut(upstream(updates, is_source), [])
        model.check_fed(update.inputs)
        _run_over(model, update, store, steps)
    return _results(metrics, model, store), model.graph


def predict(
    estimator: Any, input_fn: Callable[..., Any], *, predict_keys: Any, hooks: Sequence[Any], checkpoint_path: str | None
) -> Iterator[Any]:
    """Yields one batch of predictions after the other: a dict of arrays, or one array.

    Args:
        estimator: whose model_fn, config and model_dir to use.
        input_fn, predict_keys, hooks, checkpoint_path: as ``Estimator.predict`` takes them.

    Raises:
        NotSupportedError: for session hooks that do more than reading.
    """
    model = model_graph.build(estimator, input_fn, model_graph.PREDICT, checkpoint_path)
    predictions = estimator._extract_keys(model.spec.predictions, predict_keys)
    outputs = tf.nest.flatten(predictions)
    run = begun([*hooks, *(model.spec.prediction_hooks or ())], model, predictions)
    for values in hooked_batches(model, _store(model), run, [*outputs, *model.every_batch]):
        yield tf.nest.pack_sequence_as(predictions, [values[tensor.name] for tensor in outputs])


def _store(model: ModelGraph) -> VariableStore:
    store = VariableStore(model.variables(), model.initial_values())
    initialise_tables(model)
    return store


def _run_hooked(model: ModelGraph, hooks: Sequence[Any], updates: Sequence[Any]) -> VariableStore:
    """Evaluates under hooks, with TF1's counter of batches, which some of them read."""
    with model.graph.as_default():
        counted = v1.assign_add(tf_evaluation._get_or_create_eval_step(), 1, use_locking=True)
        elements = [tf.group(*updates), counted]
        done = tf_evaluation._get_latest_eval_step_value(elements)
    for hook in hooks:
        if hasattr(hook, "_set_evals_completed_tensor"):
            hook._set_evals_completed_tensor(done)
    run = begun(hooks, model, elements)
    store = _store(model)
    collections.deque(hooked_batches(model, store, run, [operation(element) for element in elements]), maxlen=0)
    return store


def _run_over(model: ModelGraph, update: Fragment, store: VariableStore, steps: int | None) -> None:
    call = store.function(update)
    names = [placeholder.name for placeholder in model.batch]
    dataset = model.pipeline.dataset()

    def run(batch: Sequence[Tensor]) -> None:
        known = dict(zip(names, batch, strict=True))
        call([known[tensor.name] for tensor in update.inputs])

    with show_batches(steps) as tell:
        for_each_batch(dataset if steps is None else dataset.take(steps), run, tell)


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


def _refuse_reserved(metrics: Mapping[str, Any]) -> None:
    for name in ("loss", "global_step"):
        if name in metrics:
            raise ValueError(f'Metric with name "{name}" is not allowed, because Estimator defines a metric with that name.')
