"""Descriptors of ConfigProto, made from ``config.schema`` in a pool of their own.

Importing TensorFlow's own ``config_pb2`` imports all of TensorFlow, which takes seconds. A private pool never meets the default one, so
TensorFlow may be imported before or after.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SCHEMA = Path(__file__).with_name("config.schema")
PACKAGE = "tensorflow"

Proto: TypeAlias = Any
"""A message of the private pool: its class is made at run time."""

_FIELD = re.compile(r"(?P<number>\d+) (?P<label>oneof |repeated |)(?P<type>\S+) (?P<name>\w+)")
_MAP = re.compile(r"map<([^,]+),([^>]+)>")
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    kind: getattr(_Field, f"TYPE_{kind.upper()}")
    for kind in ("bool", "bytes", "double", "float", "int32", "int64", "string", "uint32", "uint64")
}
_Parent = Any  # of a nested type: a FileDescriptorProto or a DescriptorProto


def config_proto() -> Proto:
    """An empty ConfigProto.

    Returns:
        A message of the private pool, with every field that TensorFlow's has.

    Example:
        >>> config = config_proto()
        >>> config.gpu_options.allow_growth = True
        >>> config.gpu_options.ListFields()[0][1]
        True
    """
    return message_class("ConfigProto")()


@functools.cache
def message_class(name: str) -> Any:
    """The class of a message of the schema, by its name without the package."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


@functools.cache
def pool() -> descriptor_pool.DescriptorPool:
    """The private pool."""
    private = descriptor_pool.DescriptorPool()
    private.AddSerializedFile(_file().SerializeToString())
    return private


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="estimator_bridge/config.proto", package=PACKAGE, syntax="proto3")
    blocks = dict(_blocks(SCHEMA.read_text(encoding="utf-8").splitlines()))
    enums = {name for kind, name in blocks if kind == "enum"}
    made: dict[str, _Parent] = {"": file}
    for (kind, name), lines in sorted(blocks.items(), key=lambda item: item[0][1].count(".")):
        outer, _, inner = name.rpartition(".")
        if kind == "enum":
            _add_enum(made[outer], inner, lines)
        else:
            made[name] = (made[outer].nested_type if outer else file.message_type).add(name=inner)
            _add_fields(made[name], name, lines, enums)
    return file


def _blocks(lines: Iterable[str]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    current: list[str] = []
    for line in lines:
        if line.startswith(("message ", "enum ")):
            kind, name = line.split()
            current = []
            yield (kind, name), current
        elif line.startswith("  "):
            current.append(line.strip())


def _add_enum(outer: _Parent, name: str, lines: Iterable[str]) -> None:
    enum = outer.enum_type.add(name=name)
    for line in lines:
        number, value = line.split()
        enum.value.add(name=value, number=int(number))


def _add_fields(message: Any, full_name: str, lines: Iterable[str], enums: set[str]) -> None:
    for line in lines:
        match = _FIELD.fullmatch(line)
        assert match, line
        entry = _MAP.fullmatch(match["type"])
        kind = _map_entry(message, full_name, match["name"], entry.groups(), enums) if entry else match["type"]
        repeated = entry or match["label"] == "repeated "
        field = message.field.add(name=match["name"], number=int(match["number"]))
        field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
        _set_type(field, kind, enums)
        if match["label"] == "oneof ":
            if not message.oneof_decl:
                message.oneof_decl.add(name="value")
            field.oneof_index = 0


def _map_entry(message: Any, full_name: str, field_name: str, types: tuple[str, ...], enums: set[str]) -> str:
    """Adds the nested message that stands for a map's entries; its name follows protobuf's rule."""
    name = "".join(word.capitalize() for word in field_name.split("_")) + "Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (part, kind) in enumerate(zip(("key", "value"), types, strict=True), start=1):
        _set_type(entry.field.add(name=part, number=number, label=_Field.LABEL_OPTIONAL), kind, enums)
    return f"{full_name}.{name}"


def _set_type(field: Any, kind: str, enums: set[str]) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_ENUM if kind in enums else _Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"
