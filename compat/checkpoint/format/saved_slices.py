"""A checkpoint in the V1 format: one SSTable with names and values (TensorFlow's default until 2016, and long in use).

======================  ===============================================================================================
SavedTensorSlices       1 meta (under the empty key), 2 data (under a slice's key, made as in V2's index)
SavedTensorSliceMeta    1 tensor (repeated)
SavedSliceMeta          1 name, 2 shape, 3 type, 4 slice (repeated)
SavedSlice              1 name, 2 slice, 3 data: a TensorProto
======================  ===============================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

from estimator_bridge.compat.checkpoint.errors import CorruptError
from estimator_bridge.compat.checkpoint.format import bundle
from estimator_bridge.compat.checkpoint.format.bundle import Extents, Shape
from estimator_bridge.runtime.protobuf import wire


class SavedTensor(NamedTuple):
    """A variable in the meta record.

    Attributes:
        name: Name of the variable.
        dtype: Number of its DataType.
        shape: Shape of the whole variable.
        slices: Extents of the slices that are saved.
    """

    name: bytes
    dtype: int
    shape: Shape
    slices: tuple[Extents, ...]


def decode_meta(record: bytes) -> list[SavedTensor]:
    """Decodes the variables of a V1 checkpoint.

    Args:
        record: Value of the empty key.

    Returns:
        All variables.

    Raises:
        CorruptError: The record is damaged.
    """
    return [_tensor(message) for meta in wire.messages(record, 1) for message in wire.messages(meta, 1)]


def decode_data(record: bytes) -> bytes:
    """Returns the TensorProto of a slice.

    Args:
        record: Value of the slice's key.

    Returns:
        The message.

    Raises:
        CorruptError: The record is damaged.
    """
    found = [proto for saved in wire.messages(record, 2) for proto in wire.messages(saved, 3)]
    if len(found) != 1:
        raise CorruptError("A slice of the checkpoint does not have exactly one value.", received=f"{len(found)} tensors")
    return found[0]


def _tensor(data: bytes) -> SavedTensor:
    dtypes = [value for key, value in wire.fields(data) if key == wire.tag(3, wire.VARINT) and isinstance(value, int)]
    names, shapes = list(wire.messages(data, 1)), list(wire.messages(data, 2))
    if len(names) != 1 or len(dtypes) != 1 or len(shapes) != 1:
        raise CorruptError("A variable of the checkpoint cannot be read.", expected="a name, a shape and a type")
    slices = tuple(bundle.decode_slice(message) for message in wire.messages(data, 4))
    return SavedTensor(names[0], dtypes[0], bundle.decode_shape(shapes[0]), slices)
