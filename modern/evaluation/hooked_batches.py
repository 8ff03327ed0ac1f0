"""Evaluation and prediction under session hooks, batch by batch, with the calls that a MonitoredSession makes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from estimator_bridge.modern.callbacks.from_hooks import check_hooks
from estimator_bridge.modern.callbacks.session import ReadOnlySession
from estimator_bridge.modern.callbacks.session_hook import HookCalls, HookedRun
from estimator_bridge.modern.graph.fragments import Fragment, Tensor, is_source, upstream
from estimator_bridge.modern.graph.input_pipeline import read_ahead
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation
from estimator_bridge.modern.graph.variables import VariableStore

Values = dict[str, np.ndarray]  # by the tensor's name


def begin(hooks: Sequence[Any], model: ModelGraph, fetches: Any) -> HookedRun:
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
    run = HookedRun(model.graph, fetches)
    for hook in hooks:
        HookCalls(hook, run)
    return run


def hooked_batches(model: ModelGraph, store: VariableStore, run: HookedRun, elements: Sequence[Any]) -> Iterator[Values]:
    """Runs operations and tensors for each batch until the input ends or a hook asks to stop.

    Args:
        model: Graph, whose pipeline gives the batches.
        store: Variables of the graph.
        run: Hooks that ``begin`` has begun.
        elements: Operations and tensors to run for each batch.

    Yields:
        The values of the tensors among ``elements``, and of those that hooks request.

    Raises:
        NotSupportedError: A hook does more than reading, at that moment.
    """
    operations = upstream(map(operation, elements), is_source)
    variables = {template.op.name: store[template] for template in model.variables()}
    run.session = ReadOnlySession(model.graph, variables, frozenset(operations))
    with contextlib.closing(run):
        yield from _batches(model, store, run, elements, operations)


def _batches(
    model: ModelGraph, store: VariableStore, run: HookedRun, elements: Sequence[Any], operations: set[Any]
) -> Iterator[Values]:
    for hook in run.hooks:
        hook.create()
    batches = iter(read_ahead(model.pipeline.dataset()))
    outputs: list[Tensor] = []
    step: Callable[[Sequence[Tensor]], Values] | None = None
    while True:
        run.start_step()
        for hook in run.hooks:
            hook.before()
        wanted = _tensors([*elements, *(tensor for hook in run.hooks for tensor in hook.wanted)])
        if step is None or len(wanted) > len(outputs):
            outputs, step = wanted, _step(model, store, operations, wanted)
        batch = next(batches, None)
        if batch is None:
            break
        values = step(batch)
        for hook in run.hooks:
            hook.after(values)
        yield values
        if run.stopping:
            break
    for hook in run.hooks:
        hook.end()


def _tensors(elements: Sequence[Any]) -> list[Tensor]:
    return list({element.name: element for element in elements if element is not operation(element)}.values())


def _step(
    model: ModelGraph, store: VariableStore, operations: set[Any], outputs: Sequence[Tensor]
) -> Callable[[Sequence[Tensor]], Values]:
    """Returns one function of all that runs with a batch, so that nothing is computed twice."""
    fragment = Fragment.cut(operations | upstream([tensor.op for tensor in outputs], is_source), outputs)
    run = model.batch_function(fragment, store)

    def step(batch: Sequence[Tensor]) -> Values:
        return {tensor.name: value.numpy() for tensor, value in zip(outputs, run(batch), strict=True)}

    return step
