"""A checkpoint in the V1 format: one SSTable with names and values (TensorFlow's default until 2016, and long in use).

======================  ===============================================================================================
SavedTensorSlices       1 meta (under the empty key), 2 data (under a slice's key, made as in V2's index)
SavedTensorSliceMeta    1 tensor (repeated)
SavedSliceMeta          1 name, 2 shape, 3 type, 4 slice (repeated)
SavedSlice              1 name, 2 slice, 3 data: a TensorProto
======================  ===============================================================================================

A TensorProto has a repeated field for each kind of number, packed or not.

==========================  =====================================================================================
4 tensor_content            the elements' bytes (V1 checkpoints do not use it)
5, 6, 9, 12                 float, double, complex64, complex128: fixed-width, complex as pairs
7, 10, 11, 13, 16, 17       int32 and narrower, int64, bool, float16 and bfloat16 as their bits, uint32, uint64: varints
8                           strings
==========================  =====================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

from estimator_bridge.compat.checkpoint.errors import CorruptError, UnsupportedError
from estimator_bridge.compat.checkpoint.format import bundle, dtypes
from estimator_bridge.compat.checkpoint.format.bundle import Extents, Shape
from estimator_bridge.runtime.protobuf import varint, wire

_FIXED = {1: 5, 2: 6, 8: 9, 18: 12}  # DataType -> field
_VARINTS = {3: 7, 4: 7, 5: 7, 6: 7, 9: 10, 10: 11, 11: 7, 12: 7, 13: 7, 14: 13, 15: 7, 16: 7, 17: 7, 19: 13, 22: 16, 23: 17}
_CONTENT, _STRINGS = 4, 8


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


def numbers(record: bytes, dtype: int) -> bytes:
    """Returns the elements of a slice as little-endian bytes.

    Args:
        record: Value of the slice's key.
        dtype: Number of the elements' DataType, which V1 checkpoints do not repeat here.

    Returns:
        The bytes.

    Raises:
        CorruptError: The record is damaged.
        UnsupportedError: The elements are no numbers.

    Example:
        >>> numbers(wire.text(2, wire.text(3, wire.text(7, bytes([1, 2])))), 3).hex()
        '0100000002000000'
    """
    fields = list(wire.fields(_tensor_proto(record)))
    content = _joined(fields, _CONTENT)
    if content:
        return content
    if dtype in _FIXED:
        return _joined(fields, _FIXED[dtype])
    if dtype in _VARINTS:
        return _low_bytes(_joined(fields, _VARINTS[dtype]), dtypes.dtype(dtype).size or 1)
    raise UnsupportedError(
        "A tensor of this dtype cannot be read from a V1 checkpoint.",
        received=dtypes.dtype(dtype).name,
        fix="Restore the checkpoint with tf.compat.v1.train.Saver, and save it again in the V2 format.",
    )


def strings(record: bytes) -> list[bytes]:
    """Returns the elements of a slice of strings.

    Args:
        record: Value of the slice's key.

    Raises:
        CorruptError: The record is damaged.

    Example:
        >>> strings(wire.text(2, wire.text(3, wire.text(8, b"a") + wire.text(8, b""))))
        [b'a', b'']
    """
    return list(wire.messages(_tensor_proto(record), _STRINGS))


def _tensor_proto(record: bytes) -> bytes:
    found = [proto for saved in wire.messages(record, 2) for proto in wire.messages(saved, 3)]
    if len(found) != 1:
        raise CorruptError("A slice of the checkpoint does not have exactly one value.", received=f"{len(found)} tensors")
    return found[0]


def _tensor(data: bytes) -> SavedTensor:
    types = [value for key, value in wire.fields(data) if key == wire.tag(3, wire.VARINT) and isinstance(value, int)]
    names, shapes = list(wire.messages(data, 1)), list(wire.messages(data, 2))
    if len(names) != 1 or len(types) != 1 or len(shapes) != 1:
        raise CorruptError("A variable of the checkpoint cannot be read.", expected="a name, a shape and a type")
    slices = tuple(bundle.decode_slice(message) for message in wire.messages(data, 4))
    return SavedTensor(names[0], types[0], bundle.decode_shape(shapes[0]), slices)


def _joined(fields: list[tuple[int, wire.Value]], number: int) -> bytes:
    """Returns the values of a repeated field in packed form."""
    widths = {wire.tag(number, wire.FIXED32): 4, wire.tag(number, wire.FIXED64): 8}
    parts = []
    for key, value in fields:
        if key >> 3 != number:
            continue
        if isinstance(value, bytes):
            parts.append(value)
        else:
            parts.append(value.to_bytes(widths[key], "little") if key in widths else varint.encode(value))
    return b"".join(parts)


def _low_bytes(data: bytes, size: int) -> bytes:
    """Decodes all varints of a packed field at once. Returns the low bytes of each: numbers are sign-extended on the wire."""
    import numpy as np

    if not data:
        return b""
    octets = np.frombuffer(data, np.uint8)
    if octets[-1] >= 128:
        raise CorruptError("A tensor in the checkpoint ends inside a number.")
    ends = np.flatnonzero(octets < 128)
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts + 1
    if lengths.max() > varint.MAX_BYTES:
        raise CorruptError("A number in the checkpoint does not end.", expected="a varint of at most 10 bytes")
    found = np.zeros(len(ends), np.uint64)
    for index in range(int(lengths.max())):
        longer = lengths > index
        found[longer] |= (octets[starts[longer] + index] & 127).astype(np.uint64) << np.uint64(7 * index)
    return bytes(found.astype("<u8").view("u1").reshape(-1, 8)[:, :size].tobytes())
