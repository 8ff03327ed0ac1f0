"""The host_call of a TPUEstimatorSpec as operations that run with each batch."""

from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.ops import gen_summary_ops, summary_ops_v2

from estimator_bridge.modern.graph.fragments import Fragment, Operation, upstream

_HOOKS = ("training_hooks", "evaluation_hooks", "prediction_hooks")


def host_call(spec: Any) -> tuple[Any, list[Any]]:
    """Takes a TPUEstimatorSpec's host_call out of its session hooks.

    Args:
        spec: EstimatorSpec that tensorflow-estimator makes of the TPUEstimatorSpec.

    Returns:
        The spec with hooks that only open and close the host_call's event files, and the operations and tensors to run with each
        batch.
    """
    own = {
        id(hook): hook for name in _HOOKS for hook in getattr(spec, name) or () if type(hook).__name__ == "_OutfeedHostCallHook"
    }
    if not own:
        return spec, []
    replaced = {name: tuple(SummaryWriters() if id(hook) in own else hook for hook in getattr(spec, name)) for name in _HOOKS}
    elements = [element for hook in own.values() for element in tf.nest.flatten(hook._tensors) if element is not None]
    return spec._replace(**replaced), elements


class SummaryWriters(tf.compat.v1.train.SessionRunHook):
    """Opens the event files of a graph's tf.summary (or tf.contrib.summary) writers, and closes them."""

    _opened = False

    def begin(self) -> None:
        """Finds the writers."""
        self._open = summary_ops_v2.summary_writer_initializer_op()
        self._close = [gen_summary_ops.close_summary_writer(op.inputs[0]) for op in self._open]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the files."""
        self._opened = True
        _run(self._open)

    def close(self) -> None:
        """Writes the remaining events and closes the files, also after an error."""
        if self._opened:
            _run(self._close)


def _run(operations: list[Operation]) -> None:
    if operations:
        with context.eager_mode():
            Fragment.cut(upstream(operations), []).function([])([], [])
