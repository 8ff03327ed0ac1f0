"""Descriptors of ConfigProto, read from ``config.pbtxt`` into a separate pool.

Importing TensorFlow's own ``config_pb2`` would import all of TensorFlow, which takes seconds. The private pool does not share descriptors
with the default one, so TensorFlow may be imported before or after.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

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
