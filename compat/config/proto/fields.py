"""ConfigProto as plain values by dotted path, and back, with descriptors that are read from ``config.pbtxt`` into a separate pool.

Importing TensorFlow's own ``config_pb2`` would import all of TensorFlow, which takes seconds. The private pool does not share descriptors
with the default one, so TensorFlow may be imported before or after.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor

from estimator_bridge.errors import BridgeError

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
    return _config_class()()


@functools.cache
def _config_class() -> Any:
    return message_factory.GetMessageClass(pool().FindMessageTypeByName("tensorflow.ConfigProto"))


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
