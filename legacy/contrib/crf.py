"""``tf.contrib.crf``: a linear chain's scores, its normaliser and its best tags.

Tensors are batch first. A sequence of length 0 scores 0; of padding nothing is counted, and its decoded tags are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

__all__ = [
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
]


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> tf.Tensor:
    """The unnormalised score of tags: unary and binary.

    Args:
        inputs: unary potentials of shape [batch_size, max_seq_len, num_tags].
        tag_indices: int of shape [batch_size, max_seq_len].
        sequence_lengths: int of shape [batch_size].
        transition_params: of shape [num_tags, num_tags], from tag to tag.

    Returns:
        Of shape [batch_size].
    """
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> tf.Tensor:
    """The sum of the potentials of tags; arguments as of ``crf_sequence_score``.

    Returns:
        Of shape [batch_size].
    """
    tags = tf.convert_to_tensor(tag_indices)
    scores = tf.gather(inputs, tags, batch_dims=2)
    return tf.reduce_sum(scores * _mask(sequence_lengths, tags), 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> tf.Tensor:
    """The sum of the potentials of transitions from tag to tag; arguments as of ``crf_sequence_score``.

    Returns:
        Of shape [batch_size].
    """
    tags = tf.convert_to_tensor(tag_indices)
    scores = tf.gather_nd(transition_params, tf.stack([tags[:, :-1], tags[:, 1:]], axis=2))
    return tf.reduce_sum(scores * _mask(sequence_lengths, tags)[:, 1:], 1)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> tf.Tensor:
    """The logarithm of the sum over all sequences of tags: the forward algorithm.

    Args:
        inputs: as of ``crf_sequence_score``, and so the rest.

    Returns:
        Of shape [batch_size].
    """
    lengths = tf.convert_to_tensor(sequence_lengths)
    steps = _steps(inputs)

    def forward(alphas: tf.Tensor, step: Any) -> tf.Tensor:
        time, potentials = step
        updated = potentials + tf.reduce_logsumexp(alphas[:, :, tf.newaxis] + transition_params, 1)
        return tf.where_v2((time < lengths)[:, tf.newaxis], updated, alphas)

    times = tf.range(1, tf.shape(steps, out_type=lengths.dtype)[0], dtype=lengths.dtype)
    alphas = tf.foldl(forward, (times, steps[1:]), steps[0])
    return tf.where_v2(lengths > 0, tf.reduce_logsumexp(alphas, 1), 0.0)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[tf.Tensor, Any]:
    """The log-likelihood of tags.

    Args:
        inputs: as of ``crf_sequence_score``, and so the rest.
        transition_params: a variable ``transitions`` unless given.

    Returns:
        The log-likelihoods, of shape [batch_size], and the transitions.
    """
    if transition_params is None:
        num_tags = inputs.shape.as_list()[2]
        transition_params = tf.get_variable("transitions", [num_tags, num_tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """The best tags: the Viterbi algorithm.

    Args:
        potentials: unary, of shape [batch_size, max_seq_len, num_tags].
        transition_params: of shape [num_tags, num_tags].
        sequence_length: int of shape [batch_size]; at least one tag is decoded.

    Returns:
        The tags, int32 of shape [batch_size, max_seq_len], and their scores, of shape [batch_size].
    """
    lengths = tf.maximum(tf.cast(sequence_length, tf.int32), 1)
    steps = _steps(potentials)
    itself = tf.zeros_like(steps[0], tf.int32) + tf.range(tf.shape(steps)[2])

    def forward(carry: Any, step: Any) -> tuple[tf.Tensor, tf.Tensor]:
        time, unary = step
        candidates = carry[0][:, :, tf.newaxis] + transition_params
        is_inside = (time < lengths)[:, tf.newaxis]
        scores = tf.where_v2(is_inside, unary + tf.reduce_max(candidates, 1), carry[0])
        return scores, tf.where_v2(is_inside, tf.argmax(candidates, 1, output_type=tf.int32), itself)

    times = tf.range(1, tf.shape(steps)[0])
    scores, predecessors = tf.scan(forward, (times, steps[1:]), (steps[0], itself))
    last = tf.argmax(scores[-1], 1, output_type=tf.int32)
    tags = tf.scan(lambda tag, before: tf.gather(before, tag, batch_dims=1), predecessors, last, reverse=True)
    mask = tf.sequence_mask(lengths, tf.shape(potentials)[1], tf.int32)
    return tf.transpose(tags) * mask, tf.reduce_max(scores[-1], 1)


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[Any], Any]:
    """The best tags of one sequence, in NumPy.

    Args:
        score: unary potentials of shape [seq_len, num_tags].
        transition_params: of shape [num_tags, num_tags].

    Returns:
        The tags, a list, and their score.

    Example:
        >>> import numpy as np
        >>> tags, score = viterbi_decode(np.array([[1.0, 0.0], [0.0, 0.5]]), np.array([[0.0, 0.0], [2.0, 0.0]]))
        >>> [int(tag) for tag in tags], float(score)
        ([1, 0], 2.0)
    """
    trellis = np.zeros_like(score)
    predecessors = np.zeros_like(score, dtype=np.int32)
    trellis[0] = score[0]
    for time in range(1, len(score)):
        candidates = trellis[time - 1][:, np.newaxis] + transition_params
        trellis[time] = score[time] + candidates.max(0)
        predecessors[time] = candidates.argmax(0)
    tags = [np.argmax(trellis[-1])]
    for before in predecessors[:0:-1]:
        tags.append(before[tags[-1]])
    return tags[::-1], trellis[-1].max()


def _steps(potentials: Any) -> tf.Tensor:
    """Time first, and one step behind every sequence's end: a loop over the later steps has one even where max_seq_len is 1."""
    return tf.pad(tf.transpose(potentials, [1, 0, 2]), [[0, 1], [0, 0], [0, 0]])


def _mask(sequence_lengths: Any, tags: tf.Tensor) -> tf.Tensor:
    return tf.sequence_mask(sequence_lengths, tf.shape(tags)[1], tf.float32)
