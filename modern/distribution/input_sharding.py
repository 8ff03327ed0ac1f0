"""The rows of the input that each worker, and each replica, trains on.

A worker of a cluster reads its own share of the input, and never silently the same as the others. A replica takes a batch of its
own, or a part of a batch that all replicas share.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.util import function_utils

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.distribution.strategies import Distribution
from estimator_bridge.modern.graph.fragments import Tensor, upstream
from estimator_bridge.modern.graph.input_pipeline import InputPipeline
from estimator_bridge.runtime.dataset_sharding import Definition, are_shares, definition

_END = "Training ends where the first worker's input ends."
_BATCHES = ("BatchDataset", "BatchDatasetV2", "PaddedBatchDataset", "PaddedBatchDatasetV2", "ParallelBatchDataset")


def with_context(input_fn: Callable[..., Any], pipelines: int, index: int, replicas: int) -> Callable[..., Any]:
    """Returns the input_fn with an ``input_context`` if it takes one.

    Args:
        input_fn: The script's function.
        pipelines: Number of processes that call it.
        index: Number of this process among them, from 0.
        replicas: Number of replicas in sync.
    """
    if not takes_context(input_fn):
        return input_fn
    return functools.partial(input_fn, input_context=tf.distribute.InputContext(pipelines, index, replicas))


def common_seed(input_fn: Callable[..., Any], distribution: Distribution) -> int | None:
    """Returns a seed for all workers if they divide one input, since each has to shuffle it as the others do; else None."""
    if distribution.workers == 1 or takes_context(input_fn):
        return None
    return int(distribution.gather(tf.random.uniform([1], 1, 2**31 - 1, tf.int64))[0, 0])


def own_share(
    dataset: tf.data.Dataset, pipeline: InputPipeline, input_fn: Callable[..., Any], distribution: Distribution
) -> tuple[tf.data.Dataset, str]:
    """Divides an input among the workers, unless the script does.

    Args:
        dataset: Batches of the pipeline.
        pipeline: Pipeline of the input_fn.
        input_fn: The script's function.
        distribution: Strategy, with the number of workers and of this one.

    Returns:
        The batches that this worker reads, and a sentence about them for the log.

    Raises:
        NotSupportedError: The input is no dataset, so its batches cannot be divided; or it is unknown whether the datasets of the
            workers are parts of one whole.
    """
    number, index = distribution.workers, distribution.worker
    if number == 1:
        return dataset, ""
    if takes_context(input_fn):
        return dataset, f"This worker reads what its input_fn gives for input_context {index} of {number}. {_END}"
    if is_share(pipeline, input_fn, distribution):
        return dataset, f"This worker reads what its input_fn gives, which shards its dataset by itself. {_END}"
    sentence = (
        "The input_fn takes no input_context and does not shard. So every worker reads the whole input and keeps one of every "
        f"{number} batches; this worker starts at batch {index}. {_END}"
    )
    return dataset.shard(number, index), sentence


def is_share(pipeline: InputPipeline, input_fn: Callable[..., Any], distribution: Distribution) -> bool:
    """Returns True if the input_fn of each worker gives its share of the input. All workers must call it.

    Args:
        pipeline: Pipeline of the input_fn.
        input_fn: The script's function.
        distribution: Strategy, with the number of workers.

    Raises:
        NotSupportedError: As ``own_share`` does.
    """
    if distribution.workers == 1 or takes_context(input_fn):
        return True
    if pipeline.queue_runners or not pipeline.datasets:
        raise NotSupportedError(
            "The workers of this cluster cannot share an input that is not a tf.data.Dataset: all would train on the same batches.",
            expected="an input_fn that returns a tf.data.Dataset",
            received="tensors" + (", filled by queue runners" if pipeline.queue_runners else ""),
            fix="Return a Dataset, or use --path legacy.",
        )
    own = tf.constant(list(map(int, definition(pipeline.datasets.values()))), tf.int64)
    return are_shares([Definition(*row) for row in distribution.gather(own).numpy().tolist()], "the input_fn")


UNEQUAL = "The tensors of a batch have different numbers of rows, so no part can be cut out of them."


def replica_rows(batches: Sequence[Sequence[Tensor]], distribution: Distribution) -> Sequence[Tensor]:
    """Returns the tensors that the current replica trains on; call it in a replica's context.

    Args:
        batches: Batches of this process: one for all replicas, or one for each.
        distribution: Strategy, and whether its replicas split each batch.
    """
    if len(batches) > 1:
        return batches[distribution.replica]
    if not distribution.split or distribution.replicas == 1:
        return batches[0]
    with tf.device("/cpu:0"):  # only these rows are copied to the replica's device
        return piece_of(batches[0], distribution.replica, distribution.replicas)


def piece_of(batch: Sequence[Tensor], index: int, pieces: int) -> tuple[Tensor, ...]:
    """Returns one of the consecutive parts of a batch, whose sizes differ by one row at most.

    Args:
        batch: Tensors with the batch as their first axis.
        index: Number of the part, from 0.
        pieces: Number of parts.

    Returns:
        The rows of that part. A batch with fewer rows than ``pieces`` fails when it is computed.

    Example:
        >>> import tensorflow as tf
        >>> [piece_of((tf.range(5),), index, 2)[0].numpy().tolist() for index in range(2)]
        [[0, 1], [2, 3, 4]]
    """
    sizes = {tensor.shape[0] for tensor in batch}
    (size,) = sizes if len(sizes) == 1 else (None,)
    rows = size // pieces if size is not None and size % pieces == 0 else None
    total = tf.shape(batch[0], out_type=tf.int64)[0]
    enough = tf.debugging.assert_greater_equal(total, tf.constant(pieces, tf.int64), "A batch has fewer rows than replicas.")
    checks = [tf.debugging.assert_equal(tf.shape(one, out_type=tf.int64)[0], total, UNEQUAL) for one in batch[1:]]
    with tf.control_dependencies([check for check in (enough, *checks) if check is not None]):
        start, end = index * total // pieces, (index + 1) * total // pieces
    return tuple(tf.ensure_shape(tensor[start:end], [rows, *tensor.shape[1:]]) for tensor in batch)


def batch_size(pipeline: InputPipeline) -> int | None:
    """Returns the number of examples in a batch of the input_fn; None if its graph does not fix it."""
    sizes = {leaf.shape[0] for leaf in pipeline.leaves if leaf.shape.rank}
    if None in sizes:  # batch(n) without drop_remainder: the last one may be smaller
        ops = upstream([dataset._variant_tensor.op for dataset in pipeline.datasets.values()])
        sizes = {_constant(op.inputs[1]) for op in ops if op.type in _BATCHES}
    return sizes.pop() if len(sizes) == 1 else None


def _constant(tensor: Tensor) -> int | None:
    value = tf.get_static_value(tensor)
    return None if value is None else int(value)


def is_endless(dataset: tf.data.Dataset, distribution: Distribution) -> bool:
    """Returns True if no worker's input ends, as far as the datasets tell; else workers must ask each other at each step."""
    own = dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    return bool(tf.reduce_all(distribution.gather(tf.cast([own], tf.int64)) > 0))


def takes_context(input_fn: Callable[..., Any]) -> bool:
    """Returns True if an input_fn takes an ``input_context``."""
    return "input_context" in function_utils.fn_args(input_fn)
