"""``tf.contrib.data``: transformations and readers of data sets, nearly all of which live on in ``tf.data.experimental``.

The classes of data sets were here before TensorFlow 1.4 had ``tf.data``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.compat.v2 import data as tf2_data
from tensorflow.python.data.util import nest

__all__ = [
    "AUTOTUNE",
    "Counter",
    "CsvDataset",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "TFRecordDataset",
    "TFRecordWriter",
    "TextLineDataset",
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "get_next_as_optional",
    "get_single_element",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "padded_batch_and_drop_remainder",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "sliding_window_batch",
    "sloppy_interleave",
    "unbatch",
    "unique",
]

Transformation = Callable[[Any], Any]

AUTOTUNE = tf.data.experimental.AUTOTUNE
Counter = tf.data.experimental.Counter
CsvDataset = tf.data.experimental.CsvDataset
Dataset = tf.data.Dataset
FixedLengthRecordDataset = tf.data.FixedLengthRecordDataset
Iterator = tf.data.Iterator
Optional = tf.data.experimental.Optional
RandomDataset = tf.data.experimental.RandomDataset
Reducer = tf.data.experimental.Reducer
SqlDataset = tf.data.experimental.SqlDataset
TFRecordDataset = tf.data.TFRecordDataset
TFRecordWriter = tf.data.experimental.TFRecordWriter
TextLineDataset = tf.data.TextLineDataset
bucket_by_sequence_length = tf.data.experimental.bucket_by_sequence_length
choose_from_datasets = tf.data.experimental.choose_from_datasets
copy_to_device = tf.data.experimental.copy_to_device
dense_to_sparse_batch = tf.data.experimental.dense_to_sparse_batch
enumerate_dataset = tf.data.experimental.enumerate_dataset
get_next_as_optional = tf.data.experimental.get_next_as_optional
get_single_element = tf.data.experimental.get_single_element
group_by_reducer = tf.data.experimental.group_by_reducer
group_by_window = tf.data.experimental.group_by_window
ignore_errors = tf.data.experimental.ignore_errors
make_batched_features_dataset = tf.data.experimental.make_batched_features_dataset
make_csv_dataset = tf.data.experimental.make_csv_dataset
make_saveable_from_iterator = tf.data.experimental.make_saveable_from_iterator
map_and_batch = tf.data.experimental.map_and_batch
parallel_interleave = tf.data.experimental.parallel_interleave
parse_example_dataset = tf.data.experimental.parse_example_dataset
prefetch_to_device = tf.data.experimental.prefetch_to_device
rejection_resample = tf.data.experimental.rejection_resample
sample_from_datasets = tf.data.experimental.sample_from_datasets
scan = tf.data.experimental.scan
shuffle_and_repeat = tf.data.experimental.shuffle_and_repeat
unbatch = tf.data.experimental.unbatch
unique = tf.data.experimental.unique


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """Batches, without the last one if it is smaller; use ``Dataset.batch(..., drop_remainder=True)``."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    """Padded batches, without the last one if it is smaller; use ``Dataset.padded_batch(..., drop_remainder=True)``."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def sloppy_interleave(map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1) -> Transformation:
    """Elements in whatever order they come; use ``parallel_interleave(..., sloppy=True)``."""
    return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


def sliding_window_batch(
    window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1
) -> Transformation:
    """Batches that overlap: every full window of ``window_size`` elements.

    Args:
        window_size: elements in a window.
        stride: the old name of ``window_shift``.
        window_shift: elements from one window's start to the next one's; 1 unless given.
        window_stride: elements from one to the next within a window.

    Raises:
        ValueError: both ``stride`` and ``window_shift`` are given.
    """
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = next((value for value in (stride, window_shift) if value is not None), 1)

    def apply(dataset: Any) -> Any:
        windows = dataset.window(window_size, shift, window_stride, drop_remainder=True)
        return windows.flat_map(lambda *window: _batched(window, window_size))

    return apply


def _batched(window: tuple[Any, ...], size: Any) -> Any:
    structure = window if len(window) > 1 else window[0]
    batches = nest.map_structure(lambda part: part.batch(size), structure)
    return batches if isinstance(batches, tf2_data.Dataset) else tf2_data.Dataset.zip(batches)
