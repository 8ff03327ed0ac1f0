"""``tf.contrib.framework.nest``."""

# ruff: noqa: F405 -- names of the packages that are imported whole

from __future__ import annotations

from tensorflow.python.util.nest import *  # noqa: F403 -- __all__ says which
from tensorflow.python.util.nest import is_nested

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_dict_items",
    "flatten_up_to",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "flatten_with_tuple_paths_up_to",
    "get_traverse_shallow_structure",
    "is_nested",
    "is_sequence",
    "is_sequence_or_composite",
    "map_structure",
    "map_structure_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "map_structure_with_tuple_paths_up_to",
    "pack_sequence_as",
    "yield_flat_paths",
]

is_sequence = is_nested  # TensorFlow 2.4 renamed it
