"""Variables initialised with rows and columns of a checkpoint's, chosen by vocabularies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.training import checkpoint_ops

load_and_remap_matrix_initializer = checkpoint_ops._load_and_remap_matrix_initializer
load_embedding_initializer = checkpoint_ops._load_embedding_initializer

Initializer = Callable[..., tf.Tensor]


def load_linear_multiclass_bias_initializer(
    ckpt_path: str,
    bias_tensor_name: str,
    new_class_vocab_size: int,
    old_class_vocab_file: str,
    new_class_vocab_file: str,
    num_class_oov_buckets: int = 0,
    initializer: Initializer | None = None,
    max_rows_in_memory: int = -1,
) -> Initializer:
    """The biases of a linear model of several classes, moved to another vocabulary of classes.

    Args:
        ckpt_path: the checkpoint.
        bias_tensor_name: a tensor of shape [old_class_vocab_size, 1] in it.
        initializer: for classes that the checkpoint does not have; zeros unless given.

    Returns:
        An initializer of shape [new_class_vocab_size + num_class_oov_buckets, 1].
    """
    return load_and_remap_matrix_initializer(
        ckpt_path=ckpt_path,
        old_tensor_name=bias_tensor_name,
        new_row_vocab_size=new_class_vocab_size,
        new_col_vocab_size=1,
        old_row_vocab_file=old_class_vocab_file,
        new_row_vocab_file=new_class_vocab_file,
        num_row_oov_buckets=num_class_oov_buckets,
        initializer=initializer or tf.zeros_initializer(),
        max_rows_in_memory=max_rows_in_memory,
    )


def load_variable_slot_initializer(
    ckpt_path: str,
    old_tensor_name: str,
    primary_partition_info: Any,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_file: str | None = None,
    new_row_vocab_file: str | None = None,
    old_col_vocab_file: str | None = None,
    new_col_vocab_file: str | None = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Initializer | None = None,
    max_rows_in_memory: int = -1,
) -> Initializer:
    """As ``load_and_remap_matrix_initializer``, for an optimizer's slot, which is cut as its variable is.

    Args:
        primary_partition_info: where the variable's partition lies in the whole.

    Returns:
        An initializer of the partition's shape.
    """
    load = load_and_remap_matrix_initializer(
        ckpt_path,
        old_tensor_name,
        new_row_vocab_size,
        new_col_vocab_size,
        old_row_vocab_file=old_row_vocab_file,
        new_row_vocab_file=new_row_vocab_file,
        old_col_vocab_file=old_col_vocab_file,
        new_col_vocab_file=new_col_vocab_file,
        num_row_oov_buckets=num_row_oov_buckets,
        num_col_oov_buckets=num_col_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )

    def initialize(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> tf.Tensor:
        del partition_info  # the slot's own: TensorFlow gives none to a slot
        return load(shape, dtype, partition_info=primary_partition_info)

    return initialize
