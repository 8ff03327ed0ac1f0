"""Data for the embedding tables of a TPU: ids, their samples and their weights."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class EnqueueData(NamedTuple):
    """The ids of one feature for one core, from a SparseTensor.

    Args:
        embedding_indices: Vector of ids.
        sample_indices: Matrix with the example of each id; None if each id is an example.
        aggregation_weights: Weight of each id; None for 1.

    Example:
        >>> EnqueueData([3, 5]).sample_indices is None
        True
    """

    embedding_indices: Any
    sample_indices: Any = None
    aggregation_weights: Any = None

    @staticmethod
    def from_sparse_tensor(sp_tensor: Any, weights: Any = None) -> EnqueueData:
        """Takes ids and samples from a SparseTensor, weights from another one.

        Args:
            sp_tensor: SparseTensor of ids.
            weights: SparseTensor of the same shape, or None.

        Returns:
            The data.

        Example:
            >>> import tensorflow as tf
            >>> EnqueueData.from_sparse_tensor(tf.sparse.from_dense([[0, 7]])).embedding_indices.numpy().tolist()
            [7]
        """
        return EnqueueData(sp_tensor.values, sp_tensor.indices, _values(weights))


class RaggedEnqueueData(NamedTuple):
    """The ids of one feature for one core, from a RaggedTensor.

    Args:
        embedding_indices: Vector of ids.
        row_splits: Positions where each example's ids begin and end.
        aggregation_weights: Weight of each id; None for 1.

    Example:
        >>> RaggedEnqueueData([3, 5], [0, 1, 2]).aggregation_weights is None
        True
    """

    embedding_indices: Any
    row_splits: Any = None
    aggregation_weights: Any = None

    @staticmethod
    def from_ragged_tensor(rg_tensor: Any, weights: Any = None) -> RaggedEnqueueData:
        """Takes ids and rows from a RaggedTensor, weights from another one.

        Args:
            rg_tensor: RaggedTensor of ids.
            weights: RaggedTensor with the same rows, or None.

        Returns:
            The data.

        Example:
            >>> import tensorflow as tf
            >>> RaggedEnqueueData.from_ragged_tensor(tf.ragged.constant([[1], [2, 3]])).row_splits.numpy().tolist()
            [0, 1, 3]
        """
        return RaggedEnqueueData(rg_tensor.values, rg_tensor.row_splits, _values(weights))


def get_enqueue_datas_list_from_sparse_tensors_list(
    sp_tensors_list: Iterable[Mapping[str, Any]],
) -> list[OrderedDict[str, EnqueueData]]:
    """Converts the features of every core.

    Args:
        sp_tensors_list: SparseTensors by feature name, for each core.

    Returns:
        For each core, EnqueueData by feature name, in the same order.

    Example:
        >>> get_enqueue_datas_list_from_sparse_tensors_list([{}])
        [OrderedDict()]
    """
    return _convert(sp_tensors_list, EnqueueData.from_sparse_tensor)


def get_enqueue_datas_list_from_ragged_tensors_list(
    rg_tensors_list: Iterable[Mapping[str, Any]],
) -> list[OrderedDict[str, RaggedEnqueueData]]:
    """Converts the features of every core.

    Args:
        rg_tensors_list: RaggedTensors by feature name, for each core.

    Returns:
        For each core, RaggedEnqueueData by feature name, in the same order.

    Example:
        >>> get_enqueue_datas_list_from_ragged_tensors_list([{}])
        [OrderedDict()]
    """
    return _convert(rg_tensors_list, RaggedEnqueueData.from_ragged_tensor)


def _convert(cores: Iterable[Mapping[str, Any]], convert: Callable[[Any], Any]) -> list[OrderedDict[str, Any]]:
    return [OrderedDict((name, convert(tensor)) for name, tensor in features.items()) for features in cores]


def _values(weights: Any) -> Any:
    return None if weights is None else weights.values
