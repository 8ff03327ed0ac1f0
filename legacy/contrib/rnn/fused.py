"""Fused cells, which take a whole sequence, from cells that take one step, and in reverse."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow.compat.v1 as tf


class FusedRNNCell(abc.ABC):
    """A cell that takes a whole sequence, time first."""

    @abc.abstractmethod
    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        """All steps.

        Args:
            inputs: of shape [time, batch_size, input_size], or a list of tensors of shape [batch_size, input_size].
            initial_state: of the cell; zeros unless given.
            dtype: of the state, if none is given.
            sequence_length: int of shape [batch_size].

        Returns:
            Outputs, a list for a list, and the last state.
        """


class FusedRNNCellAdaptor(FusedRNNCell):
    """A fused cell from a cell that takes one step.

    Args:
        cell: an RNNCell.
        use_dynamic_rnn: with ``tf.nn.dynamic_rnn``, not ``tf.nn.static_rnn``.
    """

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        """All steps, as of FusedRNNCell."""
        is_list = isinstance(inputs, list)
        options = {"sequence_length": sequence_length, "initial_state": initial_state, "dtype": dtype, "scope": scope}
        if self._use_dynamic_rnn:
            steps = tf.stack(inputs) if is_list else inputs
            outputs, state = tf.nn.dynamic_rnn(self._cell, steps, time_major=True, **options)
            return tf.unstack(outputs) if is_list else outputs, state
        outputs, state = tf.nn.static_rnn(self._cell, inputs if is_list else tf.unstack(inputs), **options)
        return outputs if is_list else tf.stack(outputs), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A fused cell that runs backwards.

    Args:
        cell: a FusedRNNCell.
    """

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
    ) -> tuple[Any, Any]:
        """All steps, as of FusedRNNCell; each sequence is reversed within its length, inputs and outputs alike."""
        outputs, state = self._cell(
            _reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return _reversed(outputs, sequence_length), state


def _reversed(sequence: Any, lengths: Any) -> Any:
    if isinstance(sequence, list):
        return sequence[::-1]
    return tf.reverse(sequence, [0]) if lengths is None else tf.reverse_sequence(sequence, lengths, 0, 1)
