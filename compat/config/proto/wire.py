"""Where a binary message stops being one: protobuf itself does not say."""

from __future__ import annotations

from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DEEPEST = 100
_FIXED = {_FIXED64: 8, _FIXED32: 4}


def first_fault(data: bytes, descriptor: Any, start: int = 0, depth: int = 0) -> tuple[int, str] | None:
    """The first byte that a message of this type cannot hold.

    Args:
        data: the message.
        descriptor: of its type.
        start: offset of ``data`` in the file.
        depth: messages around it; protobuf itself reads no more than 100.

    Returns:
        Offset in the file and what is wrong there; None where nothing is.

    Example:
        >>> from estimator_bridge.compat.config.proto.descriptors import config_proto
        >>> first_fault(bytes([8, 1, 255]), config_proto().DESCRIPTOR)
        (2, 'a number that does not end')
    """
    at = 0
    while at < len(data):
        begun = start + at
        try:
            tag, at = _varint(data, at)
            content, at = _content(data, at, tag & 7)
        except ValueError as error:
            return begun, str(error)
        field = descriptor.fields_by_number.get(tag >> 3)
        if field is None:
            return begun, f"field number {tag >> 3}, which {descriptor.full_name} does not have"
        if field.message_type is not None and content is not None:
            if depth == _DEEPEST:
                return begun, f"a message inside {depth} others"
            fault = first_fault(content, field.message_type, start + at - len(content), depth + 1)
            if fault:
                return fault
    return None


def _content(data: bytes, at: int, kind: int) -> tuple[bytes | None, int]:
    """What follows a tag: its bytes where it has a length, and the offset behind it."""
    if kind == _VARINT:
        return None, _varint(data, at)[1]
    if kind in _FIXED:
        return None, _within(data, at + _FIXED[kind])
    if kind == _BYTES:
        length, at = _varint(data, at)
        end = _within(data, at + length)
        return data[at:end], end
    raise ValueError(f"wire type {kind}, which protobuf does not have")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("a number that does not end")


def _within(data: bytes, end: int) -> int:
    if end > len(data):
        raise ValueError(f"a value that ends {end - len(data)} bytes after the message")
    return end
