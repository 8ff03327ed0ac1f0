"""Callbacks for session hooks: TF1's own are mapped by a table, a script's own run unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.compat.config.output.callback_rules import Timer
from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.adapter import SessionHook
from estimator_bridge.modern.callbacks.at_steps import HookAtSteps
from estimator_bridge.modern.callbacks.base import Callback
from estimator_bridge.modern.callbacks.checkpoint import CheckpointSaver
from estimator_bridge.modern.callbacks.clusters import ClusterInitialiser
from estimator_bridge.modern.callbacks.logs import NanGuard, StepCounter, TensorLogger
from estimator_bridge.modern.callbacks.session_hook import HookedRun
from estimator_bridge.modern.callbacks.stop import StopAtStep, StopOnPredicate
from estimator_bridge.modern.callbacks.summaries import SummarySaver
from estimator_bridge.modern.graph.model_graph import ModelGraph, operation, v1


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
