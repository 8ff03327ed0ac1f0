"""``tf.contrib.lookup``: tables from strings to numbers and back."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import lookup_ops
from tensorflow.python.ops.lookup_ops import DenseHashTable as MutableDenseHashTable
from tensorflow.python.ops.lookup_ops import (
    FastHashSpec,
    HasherSpec,
    IdTableWithHashBuckets,
    InitializableLookupTableBase,
    LookupInterface,
    MutableHashTable,
    StrongHashSpec,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileStringTableInitializer,
    index_table_from_file,
    index_to_string_table_from_file,
)

__all__ = [
    "FastHashSpec",
    "HashTable",
    "HasherSpec",
    "IdTableWithHashBuckets",
    "InitializableLookupTableBase",
    "KeyValueTensorInitializer",
    "LookupInterface",
    "MutableDenseHashTable",
    "MutableHashTable",
    "StrongHashSpec",
    "TableInitializerBase",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
]

KeyValueTensorInitializer = tf.lookup.KeyValueTensorInitializer
TextFileIndex = tf.lookup.TextFileIndex
TextFileInitializer = tf.lookup.TextFileInitializer


class HashTable(lookup_ops.StaticHashTableV1):
    """A table that an initializer fills; use ``tf.lookup.StaticHashTable``.

    Args:
        initializer: a TableInitializerBase.
        default_value: of keys that are not in the table.
        shared_name: tables of one name are one table, across sessions of a cluster.
        name: of the operation; ``hash_table`` unless given.
    """

    def __init__(self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None) -> None:
        self._shared_name: str | None = None
        self._asked_shared_name = shared_name
        super().__init__(initializer, default_value, name)

    def _create_resource(self) -> Any:
        self._shared_name = self._asked_shared_name  # where later TensorFlows make one up
        return super()._create_resource()

    @property
    def init(self) -> Any:
        """The operation that fills the table; use ``initializer``."""
        return self.initializer


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: Any = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = tf.string,
    name: str | None = None,
) -> Any:
    """A table from each of a tensor's values to its index.

    Raises:
        ValueError: no mapping.
    """
    _require(mapping)
    return lookup_ops.index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, dtype, name)


def index_to_string_table_from_tensor(mapping: Any, default_value: Any = "UNK", name: str | None = None) -> Any:
    """A table from indices to the strings of a tensor.

    Raises:
        ValueError: no mapping.
    """
    _require(mapping)
    return lookup_ops.index_to_string_table_from_tensor(mapping, default_value, name)


def index_to_string(tensor: Any, mapping: Any, default_value: Any = "UNK", name: str | None = None) -> Any:
    """Strings of a mapping at indices; use ``index_to_string_table_from_tensor``."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


def _require(mapping: Any) -> None:
    if mapping is None:
        raise ValueError("mapping must be specified.")
