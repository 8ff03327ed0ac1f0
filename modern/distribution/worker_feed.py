"""A task's own input, for steps that another process sends here: they ask for a batch by a name that is the same in every process.

An input_fn may depend on the task that calls it, in ways that only the script knows (its RunConfig, TF_CONFIG, flags), so it runs where
its batches are used. A ``PyFunc`` operation names a Python function by a token; the token of this one is known, not numbered.
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
_PUBLISH_SECONDS = 1800.0  # an input_fn may read its data first
Tensor = Any
Batch = tuple[Any, ...]
"""Tensors without their structure."""


class Feed:
    """What the steps that run in this process are fed with.

    Args:
        task: its name, for errors.
        reports: get the global step of a batch that is about to be used, and the batch.

    Attributes:
        ended: set when the coordinator says that training has ended.
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
        """The chief's farewell to a first training could not be told from that to a second one.

        Raises:
            NotSupportedError: where this process has trained.
        """
        if self._published.is_set():
            raise NotSupportedError(
                f"{self._task} has trained on parameter servers already, and a process does so once on the modern path.",
                expected="a script that trains once",
                fix="Start the script anew, in every task, for each training: it goes on from the last checkpoint.",
            )

    def publish(self, batches: Any) -> None:
        """Makes the iterator of a dataset of flat tuples the input from now on; a step that came before waits for it."""
        self._specs = batches.element_spec
        self._batches = batches
        self._published.set()

    def _next(self, unused: np.ndarray, step: np.ndarray, expected: bytes) -> list[Any]:
        """Whether there is a batch, and its tensors: those of the last call again where they are ``unused``."""
        if not self._published.wait(_PUBLISH_SECONDS):
            raise BridgeError(
                f"The script of {self._task} has not come to its training.",
                expected=f"an input_fn that has given its dataset {_PUBLISH_SECONDS:g} s after the chief began to train",
                received="a server, and no batches",
                fix="Read this task's log: it says what the script is doing.",
            )
        own = _described(self._specs)
        if own.encode() != expected:
            raise NotSupportedError(
                f"The input_fn of {self._task} gives other tensors than the chief's.",
                expected=expected.decode(),
                received=own,
                fix="Let it give the same features and labels in every task, in batches of one size or of any (drop_remainder=False).",
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
        unused: the last one that was taken was not used, and is taken again.
        step: the last global step that this process has begun to make; 0 if that has no number, -1 where nobody
            is to be told.
        specs: of the batch's tensors.

    Returns:
        Whether there is a batch, and its tensors, of no use where there is none.
    """
    given, *batch = tf.raw_ops.PyFunc(
        input=[tf.constant(unused), step, tf.constant(_described(specs))],
        token=_BATCH,
        Tout=[tf.bool, *(spec.dtype for spec in specs)],
    )
    return tf.ensure_shape(given, []), [tf.ensure_shape(tensor, spec.shape) for tensor, spec in zip(batch, specs, strict=True)]


def end(device: str) -> None:
    """Tells the process of a device that training has ended."""
    with tf.device(device):
        tf.raw_ops.PyFunc(input=[], token=_END, Tout=[])


def _know_types() -> None:
    """Has TensorFlow look up NumPy's types now: 2.15 does it when it first converts a tensor, and may crash where that is in its own thread."""
    with tf.Graph().as_default():  # no session and no eager context, which others configure
        smart_cond.smart_constant_value(tf.logical_not(tf.constant(True)))


def _described(specs: Sequence[tf.TensorSpec]) -> str:
    return ", ".join(f"{spec.dtype.name}{spec.shape}" for spec in specs)


def _nothing(spec: tf.TensorSpec) -> np.ndarray:
    shape = [size or 0 for size in spec.shape] if spec.shape.rank is not None else [0]
    return np.full(shape, b"" if spec.dtype == tf.string else 0, spec.dtype.as_numpy_dtype)
