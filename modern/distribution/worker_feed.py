"""A task's own input for steps that another process sends to it.

An input_fn may depend on the task that calls it, in ways that only the script knows (its RunConfig, TF_CONFIG, flags). So it runs in
the process that uses its batches. A ``PyFunc`` operation finds a Python function by its token, and TensorFlow numbers tokens. The
tokens here have fixed names, the same in every process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import smart_cond
from tensorflow.python.ops import script_ops

from estimator_bridge.errors import BridgeError, NotSupportedError

_BATCH, _END = "estimator_bridge/batch", "estimator_bridge/end"
_PUBLISH_SECONDS = 1800.0  # an input_fn may read all of its data first
Tensor = Any
Batch = tuple[Any, ...]
"""Tensors without their structure."""


class Feed:
    """Batches for the steps that run in this process.

    Args:
        task: Name of the task, for errors.
        reports: Functions that receive the global step of a batch that is about to be used, and the batch.

    Attributes:
        ended: Event that is set when the coordinator ends the training.
    """

    def __init__(self, task: str, *reports: Callable[[int, Batch], None]) -> None:
        self.ended = threading.Event()
        self._task = task
        self._reports = reports
        self._published = threading.Event()
        self._batches: Iterator[Batch] = iter(())
        self._specs: Sequence[tf.TensorSpec] = ()
        self._batch: Batch | None = None
        _know_types()
        self._registered = (self._next, self.ended.set)  # the registry itself holds no references
        script_ops._py_funcs._funcs.update(zip((_BATCH, _END), self._registered, strict=True))

    def check_unused(self) -> None:
        """Refuses a second training, since the chief's message at the end of the first would also end the second.

        Raises:
            NotSupportedError: This process has trained before.
        """
        if self._published.is_set():
            raise NotSupportedError(
                f"{self._task} has trained on parameter servers already; on the modern path a process can do so only once.",
                expected="a script that trains once",
                fix="Start the script again, in every task, for each training. It goes on from the last checkpoint.",
            )

    def publish(self, batches: Any) -> None:
        """Sets the input to the iterator of a dataset of flat tuples; steps that came earlier wait for it."""
        self._specs = batches.element_spec
        self._batches = batches
        self._published.set()

    def _next(self, unused: np.ndarray, step: np.ndarray, expected: bytes) -> list[Any]:
        """Returns whether there is a batch, and its tensors; if the last batch is ``unused``, returns that again."""
        if not self._published.wait(_PUBLISH_SECONDS):
            raise BridgeError(
                f"The script of {self._task} has not reached its training.",
                expected=f"a dataset from its input_fn within {_PUBLISH_SECONDS:g} s after the chief began to train",
                received="a server, but no batches",
                fix="Read this task's log to see what the script is doing.",
            )
        own = _described(self._specs)
        if own.encode() != expected:
            raise NotSupportedError(
                f"The input_fn of {self._task} gives different tensors than the chief's.",
                expected=expected.decode(),
                received=own,
                fix="Return the same features and labels in every task, with the same drop_remainder.",
            )
        if step >= 0 and self._batch is not None:
            for report in self._reports:
                report(int(step), self._batch)
        if not unused or self._batch is None:
            self._batch = next(self._batches, None)
        if self._batch is None:
            return [np.bool_(False), *map(_nothing, self._specs)]
        return [np.bool_(True), *(tensor.numpy() for tensor in self._batch)]


def take(unused: bool, step: Tensor, specs: Sequence[tf.TensorSpec]) -> tuple[Tensor, list[Tensor]]:
    """Takes a batch of the input of the process in which this operation runs.

    Args:
        unused: True to take the last batch again, since no step used it.
        step: Last global step that this process has begun; 0 if it has no number, -1 if it need not be reported.
        specs: Specs of the batch's tensors.

    Returns:
        A boolean, whether there is a batch, and its tensors, which are void without one.
    """
    given, *batch = tf.raw_ops.PyFunc(
        input=[tf.constant(unused), step, tf.constant(_described(specs))],
        token=_BATCH,
        Tout=[tf.bool, *(spec.dtype for spec in specs)],
    )
    return tf.ensure_shape(given, []), [tf.ensure_shape(tensor, spec.shape) for tensor, spec in zip(batch, specs, strict=True)]


def end(device: str) -> None:
    """Tells the process of a device that the training has ended."""
    with tf.device(device):
        tf.raw_ops.PyFunc(input=[], token=_END, Tout=[])


def _know_types() -> None:
    """Makes TensorFlow look up NumPy's types now; 2.15 does so at the first conversion, and may crash in a thread of its own."""
    with tf.Graph().as_default():  # without a session or an eager context, which are not configured yet
        smart_cond.smart_constant_value(tf.logical_not(tf.constant(True)))


def _described(specs: Sequence[tf.TensorSpec]) -> str:
    return ", ".join(f"{spec.dtype.name}{spec.shape}" for spec in specs)


def _nothing(spec: tf.TensorSpec) -> np.ndarray:
    shape = [size or 0 for size in spec.shape] if spec.shape.rank is not None else [0]
    return np.full(shape, b"" if spec.dtype == tf.string else 0, spec.dtype.as_numpy_dtype)
