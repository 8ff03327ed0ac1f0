"""Callbacks for session hooks: TF1's own are mapped by a table, a script's own run unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.compat.config.output.callback_rules import Timer
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.at_steps import HookAtSteps, StopAtStep, StopOnPredicate
from estimator_bridge.modern.callbacks.base import Callback
from estimator_bridge.modern.callbacks.checkpoint import CheckpointSaver
from estimator_bridge.modern.callbacks.logs import NanGuard, StepCounter, SummarySaver, TensorLogger
from estimator_bridge.modern.callbacks.session_hook import HookedRun, SessionHook
from estimator_bridge.modern.graph.fragments import Fragment, is_source, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation, v1
from estimator_bridge.modern.graph.variables import VariableStore
from estimator_bridge.modern.step.transplant import Transplant


def callbacks_for(hooks: Sequence[Any], model: ModelGraph, run: HookedRun) -> list[Callback]:
    """Maps session hooks to callbacks and begins each hook, in their order; the graph must not be finished yet.

    Args:
        hooks: ``tf.train.SessionRunHook`` objects, from train() and from the EstimatorSpec.
        model: Graph of the hooks' tensors.
        run: State that a script's own hooks share.

    Returns:
        A callback for each hook.

    Raises:
        NotSupportedError: A hook cannot run without a session.
        TypeError: An object is not a hook; Estimator raises it, too.
    """
    check_hooks(hooks)
    return [_callback(hook, model, run) for hook in hooks]


def check_hooks(hooks: Sequence[Any]) -> None:
    """Raises TypeError for an object that is not a hook, and NotSupportedError for a hook that needs a session."""
    for hook in hooks:
        if not isinstance(hook, v1.train.SessionRunHook):
            raise TypeError(f"All hooks must be `SessionRunHook` instances, given: {hook}")
        for name in {cls.__name__ for cls in type(hook).__mro__ if _is_tensorflows(cls)} & _REFUSED.keys():
            why, instead = _REFUSED[name]
            raise NotSupportedError(
                f"The session hook {type(hook).__module__}.{type(hook).__qualname__} cannot run on the modern path: {why}.",
                expected="hooks that read",
                received=name,
                fix=f"{instead}; or use --path legacy.",
            )


def _callback(hook: Any, model: ModelGraph, run: HookedRun) -> Callback:
    if _saves(hook):
        return CheckpointSaver(hook, model)
    name = type(hook).__name__ if _is_tensorflows(type(hook)) else ""
    if name == "_InitializeClustersHook":
        return ClusterInitialiser(hook, model, run)
    make = _MAPPING.get(name)
    return (make and make(hook, model)) or SessionHook(hook, run)


def _is_tensorflows(cls: type) -> bool:
    return cls.__module__.startswith(("tensorflow.python.", "tensorflow_estimator.python."))


def _saves(hook: Any) -> bool:
    """Returns True for a CheckpointSaverHook, also for a script's subclass that does nothing between saves."""
    saver = v1.train.CheckpointSaverHook
    return isinstance(hook, saver) and type(hook).before_run is saver.before_run and type(hook).after_run is saver.after_run


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


def _stop(hook: Any, model: ModelGraph) -> Callback:
    return StopAtStep(hook._num_steps, hook._last_step)


def _log(hook: Any, model: ModelGraph) -> Callback:
    elements = {tag: model.graph.as_graph_element(hook._tensors[tag]) for tag in hook._tag_order}
    tensors = {tag: element if tf.is_tensor(element) else operation(element).outputs[0] for tag, element in elements.items()}
    timer = _timer(hook) if isinstance(hook._timer, v1.train.SecondOrStepTimer) else None
    return TensorLogger(tensors, timer, hook._formatter, hook._log_at_end)


def _count(hook: Any, model: ModelGraph) -> Callback | None:
    return None if hook._summary_writer is not None else StepCounter(_timer(hook), hook._output_dir)


def _nan(hook: Any, model: ModelGraph) -> Callback | None:
    return NanGuard(hook._fail_on_nan_loss) if hook._loss_tensor is model.spec.loss else None


def _summarise(hook: Any, model: ModelGraph) -> Callback | None:
    summary = hook._summary_op if hook._summary_op is not None else hook._scaffold.summary_op
    simple = hook._summary_writer is None and hook._output_dir is not None and tf.is_tensor(summary)
    return SummarySaver(summary, _timer(hook), hook._output_dir) if simple else None


def _timer(hook: Any) -> Timer:
    return Timer(steps=hook._timer._every_steps, seconds=hook._timer._every_secs)


_MAPPING: Mapping[str, Callable[[Any, ModelGraph], Callback | None]] = {
    "ExamplesPerSecondHook": HookAtSteps,
    "LoggingTensorHook": _log,
    "NanTensorHook": _nan,
    "StepCounterHook": _count,
    "StopAtStepHook": _stop,
    "SummarySaverHook": _summarise,
    "_StopOnPredicateHook": StopOnPredicate,
}
"""TensorFlow's hook -> function that makes a callback for steps in bulk, or returns None if it would behave differently."""

_REFUSED: Mapping[str, tuple[str, str]] = {
    "FeedFnHook": ("it feeds placeholders", "Give the values by the input_fn"),
    "ProfilerHook": ("it records a session's RunMetadata", "Use tf.profiler.experimental.start and stop around the training"),
    "_MultiWorkerEarlyStoppingHook": (
        "it adds up the votes of several workers by a feed_dict",
        "Stop by run_context.request_stop() in your own hook, or by max_steps",
    ),
}
