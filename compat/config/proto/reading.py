"""Reader of ConfigProto as text, bytes or JSON, with the position of an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, message, text_format

from estimator_bridge.compat.config.proto.fields import Proto, config_proto, pool
from estimator_bridge.errors import BridgeError, CorruptError
from estimator_bridge.runtime.protobuf import wire

_START = re.compile(rb"\s*(?:[A-Za-z_][\w.]*\s*[:{<=]|[#{\[]|$)")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_DEEPEST = 100  # messages inside each other: protobuf itself reads no more


def is_text(data: bytes) -> bool:
    """Returns True if a file contains text rather than a binary message.

    Nearly every binary message has control characters; UTF-8 without them is text if it begins as text does, or is not a message.

    Args:
        data: Content of the file.

    Example:
        >>> is_text(b"placement_period: 9"), is_text(bytes([24, 9])), is_text(bytes([40, 9]))
        (True, False, False)
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    if _CONTROL.search(data):
        return False
    return bool(_START.match(data)) or first_fault(data, config_proto().DESCRIPTOR) is not None


def read_text(text: str, source: str = "the text") -> Proto:
    """Reads a ConfigProto from text.

    Args:
        text: Text form, as ``str(config)`` prints it.
        source: Name of the source for errors.

    Returns:
        A message of the private pool.

    Raises:
        BridgeError: The text is not a ConfigProto; the error gives line and column.

    Example:
        >>> read_text("allow_soft_placement: true").allow_soft_placement
        True
    """
    try:
        return text_format.Parse(text, config_proto(), descriptor_pool=pool())
    except RecursionError:
        raise BridgeError(f"{source}: messages are nested too deeply.", expected="a tf.compat.v1.ConfigProto as text") from None
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        where = f"{source}, line {line}, column {column}" if line is not None else source
        raise BridgeError(
            f"{where}: this is not a ConfigProto.",
            expected="a tf.compat.v1.ConfigProto as text, one field: value after another",
            received=re.sub(r"^(\d+:\d+ : )?('.*': )?", "", str(error), flags=re.DOTALL) + _line(text, line),
            fix="Correct that line; names are those of tensorflow/core/protobuf/config.proto.",
        ) from None


def read_binary(data: bytes, source: str = "the bytes") -> Proto:
    """Reads a ConfigProto from bytes.

    Args:
        data: Binary form, as ``config.SerializeToString()`` returns it.
        source: Name of the source for errors.

    Returns:
        A message of the private pool.

    Raises:
        BridgeError: The bytes are not a ConfigProto, or have a field without a rule; the error gives the offset.

    Example:
        >>> read_binary(bytes([56, 1])).allow_soft_placement
        True
    """
    config = config_proto()
    fault = first_fault(data, config.DESCRIPTOR)
    if fault is None:
        try:
            config.ParseFromString(data)
            return config
        except message.DecodeError as error:
            fault = 0, str(error)
    raise BridgeError(
        f"{source}, byte {fault[0]}: this is not a ConfigProto that estimator-bridge knows.",
        expected="a tf.compat.v1.ConfigProto in binary form, of TensorFlow 2.21 or older",
        received=fault[1],
        fix="Write it with config.SerializeToString(), or as text with str(config).",
    )


def read_json(values: Mapping[str, Any], source: str = "session_config") -> Proto:
    """Reads a ConfigProto from JSON, with names in either spelling.

    Args:
        values: JSON form, as ``json_format.MessageToDict`` returns it.
        source: Name of the source for errors.

    Returns:
        A message of the private pool.

    Raises:
        BridgeError: The dictionary is not a ConfigProto; the error names the field.

    Example:
        >>> read_json({"gpu_options": {"allowGrowth": True}}).gpu_options.allow_growth
        True
    """
    try:
        return json_format.ParseDict(dict(values), config_proto(), descriptor_pool=pool())
    except json_format.ParseError as error:
        raise BridgeError(
            f"{source}: this is not a ConfigProto.",
            expected="the fields of a tf.compat.v1.ConfigProto as JSON",
            received=error,
            fix="Correct the field; names are those of tensorflow/core/protobuf/config.proto.",
        ) from None


def first_fault(data: bytes, descriptor: Any, start: int = 0, depth: int = 0) -> tuple[int, str] | None:
    """Finds the first byte that a message of a type cannot contain; protobuf itself does not give its position.

    Args:
        data: Message bytes.
        descriptor: Descriptor of the message's type.
        start: Offset of ``data`` in the file.
        depth: Number of messages around this one.

    Returns:
        Offset in the file and what is wrong there; None for a message without faults.

    Example:
        >>> first_fault(bytes([8, 1, 255]), config_proto().DESCRIPTOR)
        (2, 'a number that does not end')
    """
    position = 0
    while position < len(data):
        begin = start + position
        try:
            key, value, position = wire.field_at(data, position)
        except CorruptError as error:
            return begin, str(error.received)
        field = descriptor.fields_by_number.get(key >> 3)
        if field is None:
            return begin, f"field number {key >> 3}, which {descriptor.full_name} does not have"
        if field.message_type is not None and isinstance(value, bytes):
            if depth == _DEEPEST:
                return begin, f"a message inside {depth} others"
            fault = first_fault(value, field.message_type, start + position - len(value), depth + 1)
            if fault:
                return fault
    return None


def _line(text: str, number: int | None) -> str:
    lines = text.splitlines()
    return f" In: {lines[number - 1].strip()}" if number and number <= len(lines) else ""
