"""Callbacks for session hooks: TF1's own are mapped by a table, a script's own run unchanged."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.at_steps import HookAtSteps, StopAtStep, StopOnPredicate
from estimator_bridge.modern.callbacks.base import Callback
from estimator_bridge.modern.callbacks.checkpoint import CheckpointSaver
from estimator_bridge.modern.callbacks.logs import NanGuard, SummarySaver, TensorLogger
from estimator_bridge.modern.callbacks.session_hook import HookedRun, SessionHook
from estimator_bridge.modern.graph.fragments import Fragment, is_source, upstream
from estimator_bridge.modern.graph.model_graph import operation, v1
from estimator_bridge.modern.graph.variables import VariableStore
from estimator_bridge.modern.step.transplant import Transplant


def callbacks_for(hooks: Sequence[Any], run: HookedRun) -> list[Callback]:
    """Maps session hooks to callbacks and begins each hook, in their order; the graph must not be finished yet.

    Args:
        hooks: ``tf.train.SessionRunHook`` objects, from train() and from the EstimatorSpec.
        run: Graph of the hooks' tensors, and the state that a script's own hooks share.

    Returns:
        A callback for each hook.

    Raises:
        NotSupportedError: A hook cannot run without a session.
        TypeError: An object is not a hook; Estimator raises it, too.
    """
    check_hooks(hooks)
    return [_callback(hook, run) for hook in hooks]


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


def _callback(hook: Any, run: HookedRun) -> Callback:
    name = type(hook).__name__ if _is_tensorflows(type(hook)) else ""
    make = CheckpointSaver if _saves(hook) else _MAPPING.get(name)
    return (make and make(hook, run)) or SessionHook(hook, run)


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
        run: Run with the training's input.
    """

    def __init__(self, hook: Any, run: HookedRun) -> None:
        self._add_centers = operation(hook._init_op)
        self._done = hook._is_initialized_var
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
        add_centers = VariableStore(self._run.model.variables(), {}, shared=transplant.variables).function(fragment)
        names = [placeholder.name for placeholder in self._run.model.batch]
        with context.eager_mode():
            while not transplant.variables[self._done.op.name].numpy():
                known = dict(zip(names, self._run.batches.next({}) if fragment.inputs else (), strict=True))
                add_centers([known[tensor.name] for tensor in fragment.inputs])


def _stop(hook: Any, run: HookedRun) -> Callback:
    return StopAtStep(hook._num_steps, hook._last_step)


def _count(hook: Any, run: HookedRun) -> Callback:
    hook._timer.reset()  # it may have counted in an earlier training
    return HookAtSteps(hook, run)


def _nan(hook: Any, run: HookedRun) -> Callback | None:
    return NanGuard(hook._fail_on_nan_loss) if hook._loss_tensor is run.model.spec.loss else None


def _summarise(hook: Any, run: HookedRun) -> Callback | None:
    return SummarySaver(hook, run) if all(map(tf.is_tensor, hook._get_summary_op() or [None])) else None


_MAPPING: Mapping[str, Callable[[Any, HookedRun], Callback | None]] = {
    "ExamplesPerSecondHook": HookAtSteps,
    "LoggingTensorHook": TensorLogger,
    "NanTensorHook": _nan,
    "StepCounterHook": _count,
    "StopAtStepHook": _stop,
    "SummarySaverHook": _summarise,
    "_InitializeClustersHook": ClusterInitialiser,
    "_StopOnPredicateHook": StopOnPredicate,
}
"""TensorFlow's hook -> function that makes a callback for steps in bulk, or returns None if it would behave differently."""

_REFUSED: Mapping[str, tuple[str, str]] = {
    "ProfilerHook": ("it records a session's RunMetadata", "Use tf.profiler.experimental.start and stop around the training"),
    "_MultiWorkerEarlyStoppingHook": (
        "it adds up the votes of several workers by a feed_dict",
        "Stop by run_context.request_stop() in your own hook, or by max_steps",
    ),
}
