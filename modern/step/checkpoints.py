"""Name-based checkpoints of a transplanted model, from which either path resumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_bridge.modern.graph.savers import saved_tensors
from estimator_bridge.modern.step.transplant import Transplant


class CheckpointEntry(NamedTuple):
    """One tensor of a checkpoint: a whole variable, or one slice of a partitioned one.

    Attributes:
        name: TF1 name in a checkpoint; for a slice, the name of the whole variable.
        slice_spec: Full shape and extents of a slice in TensorFlow's notation, or "".
        dtype: Type in the checkpoint.
        variable: Variable with the value.
    """

    name: str
    slice_spec: str
    dtype: tf.DType
    variable: Any

    def read(self) -> Any:
        """Returns the value to save."""
        return tf.cast(self.variable.read_value(), self.dtype)


def entries(transplant: Transplant, saver: Any = None) -> list[CheckpointEntry]:
    """Finds the variables of a transplant that a TF1 Saver of the graph saves, slots and beta powers included.

    Args:
        transplant: Transplant of the graph.
        saver: Saver of the same graph; None for the model's own.

    Raises:
        NotSupportedError: The Saver saves other objects than variables.
    """
    saved = saved_tensors(transplant.model.graph, saver or transplant.model.spec.scaffold.saver)
    return [CheckpointEntry(one.name, one.slice_spec, one.dtype, transplant.settled[one.variable]) for one in saved]


def save(items: Sequence[CheckpointEntry], prefix: str) -> None:
    """Writes ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``; both appear under their names only when complete."""
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=[entry.name for entry in items],
        shape_and_slices=[entry.slice_spec for entry in items],
        tensors=[entry.read() for entry in items],
    )
