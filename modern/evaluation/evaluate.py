"""Estimator.evaluate and Estimator.predict on the modern path.

Without session hooks, many batches run in one call of one tf.function. With hooks, each batch runs alone, between the calls that a
MonitoredSession makes.
"""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.training import evaluation as tf_evaluation

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.from_hooks import check_hooks
from estimator_bridge.modern.callbacks.progress import show_batches
from estimator_bridge.modern.callbacks.session_hook import HookCalls, HookedRun, merged
from estimator_bridge.modern.graph import model_graph
from estimator_bridge.modern.graph.batch_stream import BatchStream
from estimator_bridge.modern.graph.fragments import Fragment, Tensor, is_source, upstream
from estimator_bridge.modern.graph.input_pipeline import InputPipeline, read_ahead, releasing
from estimator_bridge.modern.graph.model_graph import ModelGraph, metric_values, operation, v1
from estimator_bridge.modern.graph.variables import VariableStore
from estimator_bridge.modern.step.transplant import initialise_tables
from estimator_bridge.runtime.estimator_calls import EvaluateCall, PredictCall

Values = dict[str, np.ndarray]  # by the tensor's name
_SECONDS = 0.25
"""Duration below which a call is followed by one of twice as many batches."""


@releasing()
def evaluate(estimator: Any, call: EvaluateCall, replicas: int = 1) -> tuple[dict[str, Any], Any]:
    """Runs the metrics of the model_fn's EVAL graph over the input, with the variables of a checkpoint.

    The batches of several replicas are evaluated one after the other: metrics add up over replicas as over batches.

    Args:
        estimator: Estimator with the model_fn, config and model_dir.
        call: Arguments of ``Estimator.evaluate``; its checkpoint_path names the variables' values, None for initial ones.
        replicas: Number of batches of a step.

    Returns:
        Metric name -> value, with ``loss`` (the mean over batches) and ``global_step``; and the graph.

    Raises:
        NotSupportedError: A session hook does more than reading, or there are hooks beside several replicas.
    """
    model = model_graph.build(estimator, call.input_fn, model_graph.EVAL, call.checkpoint_path, replicas)
    with model.graph.as_default():
        metrics = dict(model.spec.eval_metric_ops)
        for name in ("loss", "global_step"):
            if name in metrics:
                raise ValueError(
                    f'Metric with name "{name}" is not allowed, because Estimator defines a metric with that name.'
                )
        metrics["loss"] = v1.metrics.mean(model.spec.loss)
    updates = [*(operation(update) for _, update in metrics.values()), *map(operation, model.every_batch)]
    if replicas > 1 and (call.hooks or model.spec.evaluation_hooks):
        raise NotSupportedError(
            "Session hooks of an evaluation by several replicas do not run on the modern path.",
            expected="no eval_distribute with several devices, or no hooks",
            fix="Leave out RunConfig(eval_distribute=...), or use --path legacy.",
        )
    steps = call.steps and call.steps * replicas
    if call.hooks or model.spec.evaluation_hooks:
        limits = estimator._convert_eval_steps_to_hooks(call.steps)
        store = _run_hooked(model, [*(call.hooks or ()), *limits, *model.spec.evaluation_hooks], updates)
    else:
        store = _store(model)
        run = model.batch_function(Fragment.cut(upstream(updates, is_source), []), store)
        dataset = model.pipeline.dataset()
        with show_batches(steps) as tell:
            done = for_each_batch(dataset if steps is None else dataset.take(steps), run, tell)
        if done % replicas:
            v1.logging.warn(
                "All %d batches count. TensorFlow 1 leaves out, by chance, those that do not fill %d replicas.", done, replicas
            )
    values = {name: value for name, (value, _) in metrics.items()}  # tensors, or nested tuples of them
    computed = store.function(metric_values(tf.nest.flatten(values)))([])
    results: dict[str, Any] = tf.nest.pack_sequence_as(values, [value.numpy() for value in computed])
    results["global_step"] = store[model.global_step].numpy()
    scalars = {name: value[()] for name, value in results.items() if isinstance(value, np.ndarray) and not value.shape}
    return results | scalars, model.graph


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
    run = _begin([*(call.hooks or ()), *(model.spec.prediction_hooks or ())], model, predictions)
    for values in _hooked_batches(model, _store(model, run), run, [*outputs, *model.every_batch]):
        yield tf.nest.pack_sequence_as(predictions, [values[tensor.name] for tensor in outputs])


def for_each_batch(dataset: tf.data.Dataset, run: Callable[[Sequence[Tensor]], Any], tell: Callable[[int], None]) -> int:
    """Executes ``run`` once for each batch, in order, without Python between many batches; returns the number of batches.

    Args:
        dataset: Dataset of flat tuples.
        run: Function of a batch, traced once.
        tell: Function that is called now and then with the number of batches so far.

    Example:
        >>> import tensorflow as tf
        >>> total = tf.Variable(0, dtype=tf.int64)
        >>> for_each_batch(tf.data.Dataset.range(5).map(lambda x: (x,)), lambda batch: total.assign_add(batch[0]), lambda done: None)
        5
        >>> int(total)
        10
    """

    @tf.function(autograph=False)
    def some(batches: Any, most: Tensor) -> Tensor:  # returns a tensor, since TensorFlow optimises only then
        def one(done: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
            following = batches.get_next_as_optional()
            has_batch = following.has_value()

            def take() -> Tensor:
                run(following.get_value())
                return done + 1

            # A condition, since TensorFlow's inlining drops control dependencies: at the end of the input an error of the iterator
            # would not keep operations without a batch from running.
            return tf.cond(has_batch, take, lambda: done), has_batch

        return tf.while_loop(lambda done, more: more & (done < most), one, [tf.constant(0, tf.int64), tf.constant(True)])[0]

    batches = iter(read_ahead(dataset))
    done, most = 0, 1
    while True:
        started = time.monotonic()
        taken = int(some(batches, tf.constant(most, tf.int64)))
        done += taken
        tell(done)
        if taken < most:
            return done
        if time.monotonic() - started < _SECONDS:
            most *= 2


def _store(model: ModelGraph, run: HookedRun | None = None) -> VariableStore:
    streams = run.streams if run is not None and run.hooks else None
    store = VariableStore(model.variables(), model.initial_values(), streams=streams)
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
    run = _begin(hooks, model, elements)
    store = _store(model, run)
    collections.deque(_hooked_batches(model, store, run, [operation(element) for element in elements]), maxlen=0)
    return store


def _begin(hooks: Sequence[Any], model: ModelGraph, fetches: Any) -> HookedRun:
    """Begins session hooks, before the graph is finished.

    Args:
        hooks: ``tf.train.SessionRunHook`` objects in their order.
        model: Graph that the hooks read.
        fetches: Operations and tensors that TF1 would run for each batch.

    Raises:
        NotSupportedError: A hook cannot work without a session.
        TypeError: An object is no hook; Estimator raises the same.
    """
    check_hooks(hooks)
    run = HookedRun(model, fetches)
    for hook in hooks:
        HookCalls(hook, run)
    return run


def _hooked_batches(model: ModelGraph, store: VariableStore, run: HookedRun, elements: Sequence[Any]) -> Iterator[Values]:
    """Runs operations and tensors for each batch until the input ends or a hook asks to stop.

    Args:
        model: Graph, whose pipeline gives the batches.
        store: Variables of the graph.
        run: Hooks that ``_begin`` has begun.
        elements: Operations and tensors to run for each batch.

    Yields:
        The values of the tensors among ``elements``, and of those that hooks request.

    Raises:
        NotSupportedError: A hook does more than reading, at that moment.
    """
    operations = upstream(map(operation, elements), is_source)
    variables = {template.op.name: store[template] for template in model.variables()}
    run.batches = BatchStream(model.pipeline, _iterator)
    run.open(variables, frozenset(operations))
    with contextlib.closing(run):
        for hook in run.hooks:
            hook.create()
        step = _HookedStep(model, store, run, elements)
        with contextlib.suppress(tf.errors.OutOfRangeError, StopIteration):  # of the input, also if a hook reads beyond its end
            while True:
                run.start_step()
                for hook in run.hooks:
                    hook.before()
                values = step()
                run.finish_step()
                for hook in run.hooks:
                    hook.after(values)
                yield values
                if run.stopping:
                    break
        for hook in run.hooks:
            hook.end()


def _iterator(pipeline: InputPipeline) -> Any:
    return iter(pipeline.dataset() if pipeline.session else read_ahead(pipeline.dataset()))


class _HookedStep:
    """Runs operations and tensors for one batch, with what hooks request.

    Args:
        model: Graph.
        store: Variables of the graph.
        run: Hooks that have begun.
        elements: Operations and tensors to run for each batch.
    """

    def __init__(self, model: ModelGraph, store: VariableStore, run: HookedRun, elements: Sequence[Any]) -> None:
        self._model = model
        self._store = store
        self._run = run
        self._elements = elements
        self._outputs: list[Tensor] = []
        self._step: Callable[[Sequence[Tensor]], list[Tensor]] | None = None

    def __call__(self) -> Values:
        """Returns the values of the tensors by name.

        Raises:
            tf.errors.OutOfRangeError: The input has ended.
        """
        demands = [hook.demand for hook in self._run.hooks if hook.demand]
        asked = [tensor for hook in self._run.hooks for tensor in hook.wanted]
        if demands:
            elements = [*self._elements, *asked, *(element for demand in demands for element in demand.elements)]
            feeds = merged([demand.feeds for demand in demands])
            values: Values = self._run.session.compute([*{one.name: one for one in elements}.values()], feeds)
            return values
        wanted = {element.name: element for element in (*self._elements, *asked) if tf.is_tensor(element)}
        if self._step is None or len(wanted) > len(self._outputs):  # one function of all that runs with a batch
            self._outputs = list(wanted.values())
            needed = upstream([operation(element) for element in (*self._elements, *self._outputs)], is_source)
            self._step = self._model.batch_function(Fragment.cut(needed, self._outputs), self._store)
        batch = list(map(tf.convert_to_tensor, self._run.batches.next({}))) if self._run.batches else []
        return {tensor.name: value.numpy() for tensor, value in zip(self._outputs, self._step(batch), strict=True)}
