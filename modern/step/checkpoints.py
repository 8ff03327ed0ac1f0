"""Name-based checkpoints of a transplanted model: what the legacy path saves, either path resumes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.modern.graph.savers import saved_tensors
from estimator_bridge.modern.step.transplant import Transplant


class Entry(NamedTuple):
    """One tensor of a checkpoint: a whole variable, or one slice of a partitioned one.

    Attributes:
        name: its TF1 name in a checkpoint, that of the whole variable for a slice.
        slice_spec: "" or TF's notation of full shape and extents.
        dtype: as saved.
        variable: whose value it is.
    """

    name: str
    slice_spec: str
    dtype: tf.DType
    variable: Any

    def read(self) -> Any:
        """The value to save."""
        return tf.cast(self.variable.read_value(), self.dtype)


def entries(transplant: Transplant, saver: Any = None) -> list[Entry]:
    """What a TF1 Saver saves of the graph, as variables of the transplant: slots and beta powers included.

    Args:
        transplant: whose variables to save.
        saver: a Saver of the same graph; without one, the model's own.

    Raises:
        NotSupportedError: for a Saver of something else than variables.
    """
    saved = saved_tensors(transplant.model.graph, saver or transplant.model.saver)
    return [Entry(one.name, one.slice_spec, one.dtype, transplant.settled[one.variable]) for one in saved]


def save(items: Sequence[Entry], prefix: str) -> None:
    """Writes ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``; both appear under their names only when complete."""
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=[entry.name for entry in items],
        shape_and_slices=[entry.slice_spec for entry in items],
        tensors=[entry.read() for entry in items],
    )
