"""Counterpart of k-means' own hook, which picks the first cluster centers from batches of the training's input."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager import context

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback
from estimator_bridge.modern.callbacks.session_hook import HookedRun
from estimator_bridge.modern.graph.fragments import Fragment, is_source, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation
from estimator_bridge.modern.graph.variables import VariableStore
from estimator_bridge.modern.step.transplant import Transplant


class ClusterInitialiser(Callback):
    """Adds cluster centers as TF1's ``_InitializeClustersHook`` does: on the same batches, which the training does not see.

    Args:
        hook: Hook with the operation that adds centers, and the variable that is True when there are enough.
        model: Graph of the model_fn.
        run: Run with the training's input.
    """

    def __init__(self, hook: Any, model: ModelGraph, run: HookedRun) -> None:
        self._add_centers = operation(hook._init_op)
        self._done = hook._is_initialized_var
        self._model = model
        self._run = run

    def begin(self, transplant: Transplant, step: int) -> None:
        """Picks centers until there are enough, unless a checkpoint contains them.

        Raises:
            NotSupportedError: Workers of a cluster have the input.
            tf.errors.OutOfRangeError: The input ends too early.
        """
        if self._run.batches is None:
            raise NotSupportedError(
                "k-means picks its first centers from batches of the chief, which has none under parameter servers.",
                expected="one device",
                fix="Train without a cluster, or use --path legacy.",
            )
        fragment = Fragment.cut(upstream([self._add_centers], is_source), [])
        add_centers = VariableStore(self._model.variables(), {}, shared=transplant.variables).function(fragment)
        names = [placeholder.name for placeholder in self._model.batch]
        with context.eager_mode():
            while not transplant.variables[self._done.op.name].numpy():
                known = dict(zip(names, self._run.batches.get_next() if fragment.inputs else (), strict=False))  # and a digest
                add_centers([known[tensor.name] for tensor in fragment.inputs])
