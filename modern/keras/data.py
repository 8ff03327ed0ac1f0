"""Data of fit, evaluate and predict, checked against the batches that an Estimator's graphs were built for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras
from tensorflow.python.util import nest

from estimator_bridge.errors import BridgeError
from estimator_bridge.modern.graph.fragments import Tensor
from estimator_bridge.modern.graph.input_pipeline import InputPipeline
from estimator_bridge.modern.graph.model_graph import ModelGraph

Spec = Any  # a structure of tf.TypeSpec


def spec_of(data: Any) -> Spec | None:
    """Returns the structure of one batch.

    Args:
        data: Dataset, or structure of arrays or tensors with the batch as first axis.

    Returns:
        A structure of specs, of any batch size unless ``data`` is a dataset; None for generators etc., which must be read first.

    Example:
        >>> import numpy as np
        >>> spec_of({"x": np.zeros([5, 3])})
        {'x': TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)}
    """
    if hasattr(data, "element_spec"):
        return data.element_spec
    leaves = tf.nest.flatten(data)
    if not all(hasattr(leaf, "dtype") and hasattr(leaf, "shape") for leaf in leaves):
        return None
    return tf.nest.map_structure(_of_array, data)


def named(spec: Spec) -> Spec:
    """Returns the same structure with each tensor named by its keys, as the arguments of a SavedModel's signature."""
    return nest.map_structure_with_tuple_paths(_with_name, spec)


def any_batch_size(spec: Spec) -> Spec:
    """Returns the same structure with an open first axis."""
    return tf.nest.map_structure(_open_batch, spec)


def features_of(data: Any) -> Any:
    """Returns the features of a batch or of its spec, which Keras takes from the first place of a tuple."""
    return data[0] if isinstance(data, tuple) else data


def empty_input(spec: Spec) -> Callable[[], tf.data.Dataset]:
    """Returns an input_fn without batches, for graphs that are built before any batch is there."""
    return lambda: tf.data.Dataset.from_generator(lambda: iter(()), output_signature=spec)


def structured(pipeline: InputPipeline) -> tf.data.Dataset:
    """Returns the batches of an input_fn as Keras takes them: (features, labels), or only features if there are no labels."""
    _, labels = pipeline.structure

    def element(*leaves: Tensor) -> Any:
        features, targets = pipeline.with_leaves(list(leaves))
        return (features,) if labels is None else (features, targets)

    return pipeline.dataset().map(element)


def leaves_for(model: ModelGraph, data: Any) -> list[Tensor]:
    """Returns the tensors of a batch, or their specs, in the order of ``model.batch``.

    Args:
        model: Graph that takes the batch.
        data: (features, labels), or only features, in the structure that the graph was built for.

    Raises:
        BridgeError: The structure, a type or a shape differs, or there are sample weights.
    """
    wanted = model.pipeline.structure[0] if model.pipeline.structure[1] is None else model.pipeline.structure
    given = data[0] if isinstance(data, tuple) and len(data) == 1 else data  # Keras' form of features without labels
    try:
        tf.nest.assert_same_structure(wanted, given, check_types=False, expand_composites=True)
        leaves = tf.nest.flatten(given, expand_composites=True)
        pairs = zip(leaves, model.batch, strict=True)
        fits = all(leaf.dtype == fed.dtype and fed.shape.is_compatible_with(leaf.shape) for leaf, fed in pairs)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise BridgeError(
            "The batches differ from those that the model was built for.",
            expected=_described(wanted),
            received=_described(given),
            fix="Give (features, labels) as the input_fn does, with weights of examples among the features. For float64 give a "
            "tf.data.Dataset, since Keras converts arrays to float32.",
        )
    return leaves


def _described(structure: Any) -> str:
    return str(tf.nest.map_structure(lambda leaf: f"{tf.as_dtype(leaf.dtype).name}{leaf.shape}", structure))


def _of_array(array: Any) -> tf.TensorSpec:
    dtype = tf.as_dtype(array.dtype)
    if dtype.is_floating and not tf.is_tensor(array):
        dtype = tf.as_dtype(tf_keras.backend.floatx())  # Keras converts arrays to it
    return tf.TensorSpec([None, *array.shape[1:]], dtype)


def _with_name(path: tuple[Any, ...], spec: Any) -> Any:
    if not isinstance(spec, tf.TensorSpec) or not path:
        return spec
    return tf.TensorSpec(spec.shape, spec.dtype, name="_".join(map(str, path)))


def _open_batch(spec: Any) -> Any:
    if not isinstance(spec, tf.TensorSpec) or not spec.shape.rank:
        return spec
    return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)
