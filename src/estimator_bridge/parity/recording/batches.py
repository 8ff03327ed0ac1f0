"""Recorded batches: one TFRecord file a call, replayed by TensorFlow operations only."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from estimator_bridge.parity.recording.input_graphs import input_graph


def serialize(tensors: Sequence[bytes]) -> bytes:
    """Returns the record of a batch whose tensors ``tf.io.serialize_tensor`` has serialized, in order."""
    example = tf.train.Example()
    example.features.feature["tensors"].bytes_list.value.extend(tensors)
    return bytes(example.SerializeToString())


def leaves(structure: Any) -> list[Any]:
    """Returns the tensors of (features, labels); those of composite tensors are their components."""
    return [leaf for leaf in tf.nest.flatten(structure, expand_composites=True) if tf.is_tensor(leaf)]


def named_leaves(structure: Any) -> Iterator[tuple[str, Any]]:
    """Yields the place of each tensor in a structure, e.g. "features/x", and the tensor; components of a composite tensor are numbered."""
    from tensorflow.python.util import nest

    for path, leaf in nest.flatten_with_tuple_paths(structure):
        components = tf.nest.flatten(leaf, expand_composites=True)
        for number, component in enumerate(components):
            yield "/".join(map(str, path)) + (f"#{number}" if len(components) > 1 else ""), component


def read_batches(path: Path) -> Iterator[list[Any]]:
    """Yields the arrays of each recorded batch of a call."""
    if not path.exists():
        return
    from tensorflow.core.framework.tensor_pb2 import TensorProto

    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        example = tf.train.Example.FromString(record)
        yield [tf.make_ndarray(TensorProto.FromString(part)) for part in example.features.feature["tensors"].bytes_list.value]


def replay(path: Path, input_fn: Callable[[], Any]) -> Callable[..., Any]:
    """Returns an input_fn that yields recorded batches in place of those of ``input_fn``.

    Args:
        path: TFRecord file with one record of ``serialize`` for each batch.
        input_fn: The script's own; it gives the structure, dtypes and static shapes of batches, and its data are not read.

    Returns:
        An input_fn whose Dataset has one element a recorded batch. It takes ``params``, as TPUEstimator demands, and an
        ``input_context``, so that no worker looks for its share of them; it ignores both.
    """

    def replayed(params: Any = None, input_context: Any = None) -> Any:
        with input_graph():
            element = input_fn()
            if isinstance(element, tf.data.Dataset):
                element = tf.compat.v1.data.make_initializable_iterator(element).get_next()
            elif isinstance(element, list):
                element = tuple(element)
            specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves(element)]

        def parse(record: Any) -> Any:
            feature = {"tensors": tf.io.FixedLenFeature([len(specs)], tf.string)}
            parts = tf.io.parse_single_example(record, feature)["tensors"]
            tensors = iter(
                [tf.ensure_shape(tf.io.parse_tensor(parts[i], spec.dtype), spec.shape) for i, spec in enumerate(specs)]
            )
            flat = tf.nest.flatten(element, expand_composites=True)
            recorded = [next(tensors) if tf.is_tensor(leaf) else leaf for leaf in flat]
            return tf.nest.pack_sequence_as(element, recorded, expand_composites=True)

        return tf.compat.v1.data.TFRecordDataset(str(path)).map(parse)

    return replayed
