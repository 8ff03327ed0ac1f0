"""ConfigProto as plain values by dotted path, and back; read from text, bytes or JSON, with the position of an error.

Its descriptors are read from ``config.pbtxt`` into a private pool. Importing TensorFlow's own ``config_pb2`` would import all of TensorFlow, which
takes seconds. The private pool does not share descriptors with the default one, so TensorFlow may be imported before or after.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from estimator_bridge.errors import BridgeError, CorruptError
from estimator_bridge.runtime.protobuf import wire

Proto: TypeAlias = Any
"""A message of the private pool: its class is made at run time."""


def config_proto() -> Proto:
    """Returns an empty ConfigProto of the private pool, with every field that TensorFlow's has.

    Example:
        >>> config = config_proto()
        >>> config.gpu_options.allow_growth = True
        >>> config.gpu_options.ListFields()[0][1]
        True
    """
    return message_factory.GetMessageClass(pool().FindMessageTypeByName("tensorflow.ConfigProto"))()


@functools.cache
def pool() -> descriptor_pool.DescriptorPool:
    """Returns the private pool."""
    text = Path(__file__).with_name("config.pbtxt").read_text(encoding="utf-8")
    private = descriptor_pool.DescriptorPool()
    private.AddSerializedFile(text_format.Parse(text, descriptor_pb2.FileDescriptorProto()).SerializeToString())
    return private


def set_fields(message: Proto) -> dict[str, Any]:
    """Returns the fields that a message sets.

    Args:
        message: A ConfigProto, of the private pool or TensorFlow's own.

    Returns:
        Dotted path -> value: enums by name, repeated fields as tuples, maps as dictionaries; fields at their default are absent.

    Example:
        >>> config = config_proto()
        >>> config.gpu_options.allow_growth = True
        >>> config.device_count["CPU"] = 2
        >>> set_fields(config)
        {'device_count': {'CPU': 2}, 'gpu_options.allow_growth': True}
    """
    return dict(_walk(message, ""))


def message_of(values: Mapping[str, Any]) -> Proto:
    """Returns a ConfigProto that sets these fields: the inverse of ``set_fields``.

    Args:
        values: Dotted path -> plain value.

    Returns:
        A message of the private pool.

    Raises:
        BridgeError: A value has the wrong type, or is out of range.

    Example:
        >>> set_fields(message_of({"graph_options.optimizer_options.global_jit_level": "ON_1"}))
        {'graph_options.optimizer_options.global_jit_level': 'ON_1'}
    """
    config = config_proto()
    for path, value in values.items():
        *outer, name = path.split(".")
        message = config
        for part in outer:
            message = getattr(message, part)
        try:
            _assign(message, name, value)
        except (ValueError, TypeError, KeyError) as error:
            raise BridgeError(
                f"session_config.{path} cannot hold {value!r}.",
                expected="a value of the field's type in TensorFlow's config.proto",
                received=error,
            ) from None
    return config


def _walk(message: Proto, prefix: str) -> Iterator[tuple[str, Any]]:
    for field, value in message.ListFields():
        if field.message_type is not None and not is_repeated(field):
            yield from _walk(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, _plain_field(field, value)


def _plain_field(field: Any, value: Any) -> Any:
    if _is_map(field):
        return {key: _plain(field.message_type.fields_by_name["value"], value[key]) for key in sorted(value)}
    if is_repeated(field):
        return tuple(_plain(field, one) for one in value)
    return _plain(field, value)


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return {inner.name: _plain_field(inner, one) for inner, one in value.ListFields()}
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def _assign(message: Proto, name: str, value: Any) -> None:
    field = message.DESCRIPTOR.fields_by_name[name]
    if _is_map(field):
        getattr(message, name).update(value)
    elif is_repeated(field) and field.message_type is not None:
        for one in value:
            added = getattr(message, name).add()
            for inner, part in one.items():
                _assign(added, inner, part)
    elif is_repeated(field):
        getattr(message, name).extend(value)
    elif field.enum_type is not None and isinstance(value, str):
        setattr(message, name, field.enum_type.values_by_name[value].number)
    else:
        setattr(message, name, value)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def is_repeated(field: Any) -> bool:
    """Returns True for a repeated field; protobuf 7 no longer has ``label``, protobuf 4 has no ``is_repeated`` yet."""
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == field.LABEL_REPEATED)


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
        except DecodeError as error:
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
