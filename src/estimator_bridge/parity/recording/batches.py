"""Recorded batches: one TFRecord file a call, replayed by TensorFlow operations only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

Structure = Any


class BatchWriter:
    """Appends batches to a record file.

    Args:
        path: Path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._writer = tf.io.TFRecordWriter(str(path))

    def write(self, tensors: Sequence[Any]) -> None:
        """Writes the values of a batch's tensors, in order."""
        parts = [tf.make_tensor_proto(value).SerializeToString() for value in tensors]
        example = tf.train.Example()
        example.features.feature["tensors"].bytes_list.value.extend(parts)
        self._writer.write(example.SerializeToString())

    def close(self) -> None:
        """Completes the file."""
        self._writer.close()


def leaves(structure: Structure) -> list[Any]:
    """Returns the tensors of (features, labels); those of composite tensors are their components."""
    return [leaf for leaf in tf.nest.flatten(structure, expand_composites=True) if tf.is_tensor(leaf)]


def replay(path: Path, input_fn: Callable[[], Structure]) -> Callable[..., Structure]:
    """Returns an input_fn that yields recorded batches in place of those of ``input_fn``.

    Args:
        path: File that ``BatchWriter`` wrote.
        input_fn: The script's own; it gives the structure, dtypes and static shapes of batches, and its data are not read.

    Returns:
        An input_fn whose Dataset has one element a recorded batch. It takes ``params``, as TPUEstimator demands, and ignores
        them.
    """

    def replayed(params: Any = None) -> Structure:
        with tf.Graph().as_default():
            element = _one_element(input_fn())
            specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves(element)]

        def parse(record: Any) -> Any:
            feature = {"tensors": tf.io.FixedLenFeature([len(specs)], tf.string)}
            parts = tf.io.parse_single_example(record, feature)["tensors"]
            tensors = [tf.ensure_shape(tf.io.parse_tensor(parts[i], spec.dtype), spec.shape) for i, spec in enumerate(specs)]
            return _with_leaves(element, tensors)

        return tf.compat.v1.data.TFRecordDataset(str(path)).map(parse)

    return replayed


def _one_element(result: Any) -> Structure:
    if isinstance(result, tf.data.Dataset):
        return tf.compat.v1.data.make_initializable_iterator(result).get_next()
    return tuple(result) if isinstance(result, list) else result


def _with_leaves(structure: Structure, tensors: Sequence[Any]) -> Structure:
    remaining = iter(tensors)
    flat = tf.nest.flatten(structure, expand_composites=True)
    return tf.nest.pack_sequence_as(
        structure, [next(remaining) if tf.is_tensor(leaf) else leaf for leaf in flat], expand_composites=True
    )
