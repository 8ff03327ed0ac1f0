"""A checkpoint in V1's format: one SSTable that holds names and values both (TensorFlow's default until 2016, and long in use).

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
    """A variable as the meta record has it.

    Attributes:
        name: of it.
        dtype: number of its DataType.
        shape: of the whole.
        slices: extents of what is saved of it.
    """

    name: bytes
    dtype: int
    shape: Shape
    slices: tuple[Extents, ...]


def decode_meta(record: bytes) -> list[SavedTensor]:
    """The variables of a V1 checkpoint.

    Args:
        record: what stands under the empty key.

    Returns:
        Each variable.

    Raises:
        CorruptError: when it cannot be read.
    """
    return [_tensor(message) for meta in wire.messages(record, 1) for message in wire.messages(meta, 1)]


def decode_data(record: bytes) -> bytes:
    """The TensorProto of a slice.

    Args:
        record: what stands under the slice's key.

    Returns:
        The message.

    Raises:
        CorruptError: when it cannot be read.
    """
    found = [proto for saved in wire.messages(record, 2) for proto in wire.messages(saved, 3)]
    if len(found) != 1:
        raise CorruptError("A slice of the checkpoint has no value.", received=f"{len(found)} tensors")
    return found[0]


def _tensor(data: bytes) -> SavedTensor:
    dtypes = [value for key, value in wire.fields(data) if key == wire.tag(3, wire.VARINT) and isinstance(value, int)]
    names, shapes = list(wire.messages(data, 1)), list(wire.messages(data, 2))
    if len(names) != 1 or len(dtypes) != 1 or len(shapes) != 1:
        raise CorruptError("A variable of the checkpoint cannot be read.", expected="a name, a shape and a type")
    slices = tuple(bundle.decode_slice(message) for message in wire.messages(data, 4))
    return SavedTensor(names[0], dtypes[0], bundle.decode_shape(shapes[0]), slices)
