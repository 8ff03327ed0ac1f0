"""The recorded batches of an evaluation or prediction beside the script's own, whose size may be another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_bridge.parity.rewrite.inputs import Inputs, rounded_rows


class HeldOut:
    """The recorded batches of one evaluation or prediction, as soon as the script's own have as many rows.

    After the last recorded batch, the script's own follow. Where rows cannot be counted, an own batch stands for a recorded one.

    Args:
        feed: Function of an own and a recorded batch that returns the recorded one in the structure of the own one.
        call: Name of the recorded call.
        following: Function that returns the next recorded batch, and None after the last one.
        inputs: Object that keeps the rows of both sides; None to keep none.
    """

    def __init__(
        self, feed: Callable[[Any, Any], Any], call: str, following: Callable[[], Any], inputs: Inputs | None = None
    ) -> None:
        self._feed, self.call, self._following, self._inputs = feed, call, following, inputs
        self._recorded, self._due = following(), 0

    @property
    def is_over(self) -> bool:
        """True after the last recorded batch."""
        return self._recorded is None

    def beside(self, batch: Any, rows: int | None = None) -> Iterator[Any]:
        """Yields the batches to run in the place of one of the script's own; perhaps none, or several.

        Args:
            batch: Batch of the script's own.
            rows: Number of its rows, if it is not that of ``batch``.
        """
        rows = count_rows(batch) if rows is None else rows
        self._due += 1 if rows is None else rows
        inputs = self._inputs
        if inputs and inputs.has_room(self.call):
            inputs.add_rows(rounded_rows(batch), (), self.call)
        while self._due and self._recorded:
            size = None if rows is None else count_rows(self._recorded[1])
            if size is not None and size > self._due:
                break
            fed = self._feed(batch, self._recorded)
            if inputs and inputs.has_room(self.call):
                inputs.add_rows((), rounded_rows(fed), self.call)
            self._due -= self._due if size is None else size
            self._recorded = self._following()
            yield fed
        if self._due and not self._recorded:
            self._due = 0
            yield batch


def count_rows(batch: Any) -> int | None:
    """Returns the number of rows of a batch; None if its tensors do not tell, e.g. sparse ones."""
    tensors = tf.nest.flatten(batch, expand_composites=True)
    sizes = {np.shape(tensor)[0] for tensor in tensors if np.ndim(tensor)}
    return sizes.pop() if len(sizes) == 1 and len(tensors) == len(tf.nest.flatten(batch)) else None
