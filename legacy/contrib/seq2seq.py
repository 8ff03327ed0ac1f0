"""``tf.contrib.seq2seq``: its loss, and helpers of decoders. Its decoders are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["hardmax", "sequence_loss", "tile_batch"]


def sequence_loss(
    logits: tf.Tensor,
    targets: tf.Tensor,
    weights: tf.Tensor,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., tf.Tensor] | None = None,
    name: str | None = None,
) -> tf.Tensor:
    """The weighted cross-entropy of sequences.

    Over time and over the batch the loss is summed, and divided by the weights' sum (``average_...``) or by how many of them are
    not zero (``sum_...``), or it is left as it is.

    Args:
        logits: of shape [batch_size, sequence_length, num_classes].
        targets: int of shape [batch_size, sequence_length].
        weights: of shape [batch_size, sequence_length].
        softmax_loss_function: of ``labels`` and ``logits``; sparse softmax cross-entropy unless given.

    Returns:
        A scalar, or a tensor of the dimensions that are left.

    Raises:
        ValueError: a shape is another, or both kinds of reduction are asked for.
    """
    for tensor, what, rank in ((logits, "Logits", 3), (targets, "Targets", 2), (weights, "Weights", 2)):
        if len(tensor.shape) != rank:
            dimensions = "[batch_size x sequence_length x logits]" if rank == 3 else "[batch_size x sequence_length]"
            raise ValueError(f"{what} must be a {dimensions} tensor")
    if average_across_timesteps and sum_over_timesteps:
        raise ValueError("average_across_timesteps and sum_over_timesteps cannot be set to True at same time.")
    if average_across_batch and sum_over_batch:
        raise ValueError("average_across_batch and sum_over_batch cannot be set to True at same time.")
    entropy_of = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        flat = tf.reshape(logits, [-1, tf.shape(logits)[2]])
        entropy = entropy_of(labels=tf.reshape(targets, [-1]), logits=flat) * tf.reshape(weights, [-1])
        entropy = tf.reshape(entropy, tf.shape(logits)[:2])
        averaged = [axis for axis, asked in enumerate((average_across_batch, average_across_timesteps)) if asked]
        counted = [axis for axis, asked in enumerate((sum_over_batch, sum_over_timesteps)) if asked]
        # Averages go before counts where one dimension asks for each: TensorFlow 1 then reduced the averaged one alone.
        if averaged:
            return tf.div_no_nan(tf.reduce_sum(entropy, averaged), tf.reduce_sum(weights, averaged))
        if counted:
            total = tf.cast(tf.count_nonzero(weights, counted), entropy.dtype)
            return tf.div_no_nan(tf.reduce_sum(entropy, counted), total)
        return entropy


def hardmax(logits: Any, name: str | None = None) -> tf.Tensor:
    """Ones where ``logits`` are largest along their last dimension, zeros elsewhere."""
    with tf.name_scope(name, "Hardmax", [logits]):
        logits = tf.convert_to_tensor(logits, name="logits")
        return tf.one_hot(tf.argmax(logits, -1), logits.shape[-1].value or tf.shape(logits)[-1], dtype=logits.dtype)


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Every row of each tensor so many times, one behind the other: a batch for beam search.

    Args:
        t: a tensor of shape [batch_size, ...], or a structure of them.
        multiplier: how many times.

    Returns:
        The same structure of tensors of shape [batch_size * multiplier, ...].
    """
    flat = tf.nest.flatten(t)
    with tf.name_scope(name, "tile_batch", [*flat, multiplier]):
        return tf.nest.map_structure(lambda tensor: _repeated_rows(tf.convert_to_tensor(tensor, name="t"), multiplier), t)


def _repeated_rows(tensor: tf.Tensor, multiplier: int) -> tf.Tensor:
    if tensor.shape.ndims is None:
        raise ValueError("t must have statically known rank")
    tiled = tf.repeat(tensor, multiplier, axis=0)
    batch_size = tensor.shape.as_list()[0]
    tiled.set_shape([None if batch_size is None else batch_size * multiplier, *tensor.shape[1:]])
    return tiled
