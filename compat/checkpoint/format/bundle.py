"""The messages of a checkpoint's index: one header, and one entry for each tensor or slice.

======================  ===============================================================================================
BundleHeaderProto       1 num_shards, 2 endianness (0 little, 1 big), 3 version
BundleEntryProto        1 dtype, 2 shape, 3 shard_id, 4 offset, 5 size, 6 crc32c (fixed32, masked), 7 slices (repeated)
TensorShapeProto        2 dim (repeated: 1 size), 3 unknown_rank
TensorSliceProto        1 extent (repeated: 1 start, 2 length; no length stands for the whole dimension)
======================  ===============================================================================================
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from estimator_bridge.compat.checkpoint.errors import CorruptError, UnsupportedError
from estimator_bridge.runtime.protobuf import varint, wire

Extent = tuple[int, int]  # start, length; length -1 for the whole dimension
Extents = tuple[Extent, ...]
Shape = tuple[int, ...]
VERSION = wire.integer(1, 1)  # VersionDef: producer 1, the only one there has been


class Header(NamedTuple):
    """The header of an index, which is the value of the empty key.

    Attributes:
        num_shards: Number of data files.
        big_endian: True if tensors have the big-endian byte order.
        version: VersionDef, as it was written.
    """

    num_shards: int
    big_endian: bool = False
    version: bytes = VERSION

    def encode(self) -> bytes:
        """Encodes the message."""
        return wire.integer(1, self.num_shards) + wire.integer(2, self.big_endian) + wire.text(3, self.version)

    @classmethod
    def decode(cls, data: bytes) -> Header:
        """Decodes the message.

        Raises:
            CorruptError: The message is damaged.

        Example:
            >>> Header.decode(Header(3).encode()).num_shards
            3
        """
        values: dict[int, Any] = dict(wire.fields(data))
        shards, order, version = values.get(_1, 0), values.get(_2, 0), values.get(wire.tag(3, wire.BYTES), b"")
        if not 0 < shards <= 99_999 or order > 1:
            raise CorruptError("The header of the index cannot be read.", expected="1 to 99999 shards", received=str(values))
        return cls(shards, bool(order), version)


class Entry(NamedTuple):
    """The place of a tensor's bytes.

    Attributes:
        dtype: Number of TensorFlow's DataType.
        shape: Shape of the tensor.
        shard_id: Number of the data file.
        offset: Offset of the first byte in the data file.
        size: Number of bytes.
        crc32c: Masked checksum of the bytes.
        slices: Slices of a partitioned variable. Each has an entry of its own; this entry has no bytes then.
    """

    dtype: int
    shape: Shape
    shard_id: int = 0
    offset: int = 0
    size: int = 0
    crc32c: int = 0
    slices: tuple[Extents, ...] = ()

    def encode(self) -> bytes:
        """Encodes the message."""
        parts = [_head(self.dtype, self.shape), wire.integer(3, self.shard_id), wire.integer(4, self.offset)]
        parts += [wire.integer(5, self.size), wire.fixed32(6, self.crc32c)]
        parts += [wire.text(7, encode_slice(extents)) for extents in self.slices]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> Entry:
        """Decodes the message.

        Raises:
            CorruptError: The message is damaged.

        Example:
            >>> Entry.decode(Entry(1, (2, 3), 0, 8, 24, 99).encode())
            Entry(dtype=1, shape=(2, 3), shard_id=0, offset=8, size=24, crc32c=99, slices=())
        """
        values: dict[int, Any] = {}  # the wire type in the tag decides between int and bytes
        for tag, value in wire.fields(data):
            if tag not in _ENTRY_TAGS:
                raise UnsupportedError(
                    "An entry of the index has an unknown field.",
                    received=f"tag {tag}",
                    fix="Write the checkpoint with TensorFlow 2.21 or older.",
                )
            values[tag] = decode_shape(value) if tag == _SHAPE else value
        slices = tuple(map(decode_slice, wire.messages(data, 7))) if _SLICES in values else ()
        get = values.get
        return cls(get(_1, 0), get(_SHAPE, ()), get(_3, 0), get(_4, 0), get(_5, 0), get(_CRC, 0), slices)


def encode_slice(extents: Extents) -> bytes:
    """Encodes a TensorSliceProto."""
    return b"".join(wire.text(1, _extent(*extent)) for extent in extents)


@functools.lru_cache(4096)
def decode_slice(data: bytes) -> Extents:
    """Decodes a TensorSliceProto.

    Example:
        >>> decode_slice(encode_slice(((2, 5), (0, -1))))
        ((2, 5), (0, -1))
    """
    messages = _only_messages(data, 1, "A slice in the index cannot be read.", expected="extents")
    return tuple((varint.signed(extent.get(_1, 0)), varint.signed(extent.get(_2, 2**64 - 1))) for extent in messages)


@functools.lru_cache(4096)  # large models have few shapes
def decode_shape(data: bytes) -> Shape:
    """Decodes a TensorShapeProto; a saved tensor has no unknown dimension."""
    message = "A tensor's shape in the index cannot be read."
    sizes = tuple(dim.get(_1, 0) for dim in _only_messages(data, 2, message, expected="a known shape"))
    if any(size >= 2**63 for size in sizes):
        raise CorruptError(message, expected="sizes from 0", received=str(sizes))
    return sizes


def _only_messages(data: bytes, number: int, message: str, expected: str) -> Iterator[dict[int, Any]]:
    """Yields the fields of each message in a repeated field, which must be the only one."""
    for tag, value in wire.fields(data):
        if tag != wire.tag(number, wire.BYTES) or isinstance(value, int):
            raise CorruptError(message, expected=expected, received=f"tag {tag}")
        yield dict(wire.fields(value))


def _extent(start: int, length: int) -> bytes:
    return wire.integer(1, start) + (b"" if length < 0 else varint.encode(_2) + varint.encode(length))


@functools.lru_cache(4096)
def _head(dtype: int, shape: Shape) -> bytes:
    dims = b"".join(wire.text(2, wire.integer(1, size)) for size in shape)
    return wire.integer(1, dtype) + wire.text(2, dims)


_1, _2, _3, _4, _5 = (wire.tag(number, wire.VARINT) for number in range(1, 6))
_SHAPE, _CRC, _SLICES = wire.tag(2, wire.BYTES), wire.tag(6, wire.FIXED32), wire.tag(7, wire.BYTES)
_ENTRY_TAGS = {_1, _SHAPE, _3, _4, _5, _CRC, _SLICES}
