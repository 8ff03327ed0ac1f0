"""Which callback stands for which session hook: one function a hook, refused by name where there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.callbacks.base import Callback, Timer
from estimator_bridge.modern.callbacks.checkpoint import CheckpointSaver
from estimator_bridge.modern.callbacks.logs import NanGuard, StepCounter, TensorLogger
from estimator_bridge.modern.callbacks.stop import StopAtStep
from estimator_bridge.modern.callbacks.summaries import SummarySaver
from estimator_bridge.modern.model_graph import ModelGraph, operation, v1


def callbacks_for(hooks: Sequence[Any], model: ModelGraph, config: Any) -> list[Callback]:
    """Maps session hooks.

    Args:
        hooks: ``tf.train.SessionRunHook`` objects, from train() and from the EstimatorSpec.
        model: the graph that their tensors belong to.
        config: the RunConfig.

    Returns:
        A callback for each.

    Raises:
        NotSupportedError: for a hook without a counterpart, by its class name.
    """
    return [_callback(hook, model, config) for hook in hooks]


def _callback(hook: Any, model: ModelGraph, config: Any) -> Callback:
    make = _MAPPING.get(type(hook).__name__)
    if make is None or type(hook) is not getattr(v1.train, type(hook).__name__, None):
        raise _refused(hook, "it may run anything in the session")
    return make(hook, model, config)


def _refused(hook: Any, why: str) -> NotSupportedError:
    return NotSupportedError(
        f"The session hook {type(hook).__module__}.{type(hook).__qualname__} cannot run on the modern path: {why}.",
        expected="one of " + ", ".join(sorted(_MAPPING)),
        received=type(hook).__name__,
        fix="Drop the hook, or use --path legacy.",
    )


def _stop(hook: Any, model: ModelGraph, config: Any) -> Callback:
    return StopAtStep(hook._num_steps, hook._last_step)


def _save(hook: Any, model: ModelGraph, config: Any) -> Callback:
    return CheckpointSaver(hook, model)


def _log(hook: Any, model: ModelGraph, config: Any) -> Callback:
    if hook._log_at_end:
        raise _refused(hook, "it logs after the last step, when no batch is there")
    tensors: Mapping[str, Any] = hook._tensors
    elements = {tag: model.graph.as_graph_element(tensors[tag]) for tag in hook._tag_order}
    return TensorLogger({tag: _tensor(element) for tag, element in elements.items()}, _timer(hook), hook._formatter)


def _count(hook: Any, model: ModelGraph, config: Any) -> Callback:
    return StepCounter(_timer(hook), hook._output_dir)


def _nan(hook: Any, model: ModelGraph, config: Any) -> Callback:
    if hook._loss_tensor is not model.spec.loss:
        raise _refused(hook, "it watches another tensor than the loss")
    return NanGuard(hook._fail_on_nan_loss)


def _summarise(hook: Any, model: ModelGraph, config: Any) -> Callback:
    summary = hook._summary_op if hook._summary_op is not None else hook._scaffold.summary_op
    if hook._output_dir is None or not tf.is_tensor(summary):
        raise _refused(hook, "it has a writer of its own or several summaries")
    return SummarySaver(summary, _timer(hook), hook._output_dir)


def _timer(hook: Any) -> Timer:
    return Timer(steps=hook._timer._every_steps, seconds=hook._timer._every_secs)


def _tensor(element: Any) -> Any:
    return operation(element).outputs[0] if not tf.is_tensor(element) else element


_MAPPING: Mapping[str, Callable[..., Callback]] = {
    "StopAtStepHook": _stop,
    "CheckpointSaverHook": _save,
    "LoggingTensorHook": _log,
    "StepCounterHook": _count,
    "NanTensorHook": _nan,
    "SummarySaverHook": _summarise,
}
