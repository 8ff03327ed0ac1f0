"""``tf.contrib.seq2seq``: its loss. Its decoders are in the real tf.contrib alone."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow.compat.v1 as tf

__all__ = ["sequence_loss"]


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
