"""Several bidirectional layers, one on top of the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

# One layer: both cells, its inputs and both initial states -> its outputs and both last states.
_Layer = Callable[[Any, Any, Any, Any, Any], tuple[Any, Any, Any]]


def stack_bidirectional_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: list[tf.Tensor],
    initial_states_fw: list[Any] | None = None,
    initial_states_bw: list[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[tf.Tensor], tuple[Any, ...], tuple[Any, ...]]:
    """Layers of ``tf.nn.static_bidirectional_rnn``.

    Args:
        cells_fw: one RNNCell a layer, forward.
        cells_bw: likewise, backward.
        inputs: a tensor of shape [batch_size, input_size] for each step.
        initial_states_fw: one a layer.
        initial_states_bw: likewise.

    Returns:
        Outputs, a list of tensors of shape [batch_size, both output sizes], and the last states of each direction.

    Raises:
        ValueError: the lists are empty, not lists or of different lengths.
    """

    def layer(cell_fw: Any, cell_bw: Any, previous: Any, initial_fw: Any, initial_bw: Any) -> tuple[Any, Any, Any]:
        return tf.nn.static_bidirectional_rnn(
            cell_fw, cell_bw, previous, initial_fw, initial_bw, dtype, sequence_length, tf.get_variable_scope()
        )

    return _stacked(layer, cells_fw, cells_bw, inputs, initial_states_fw, initial_states_bw, scope)


def stack_bidirectional_dynamic_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: tf.Tensor,
    initial_states_fw: list[Any] | None = None,
    initial_states_bw: list[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[tf.Tensor, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of ``tf.nn.bidirectional_dynamic_rnn``.

    Args:
        cells_fw: one RNNCell a layer, forward.
        cells_bw: likewise, backward.
        inputs: of shape [batch_size, time, input_size], or time first with ``time_major``.
        initial_states_fw: one a layer.
        initial_states_bw: likewise.

    Returns:
        Outputs of both directions side by side, of shape [batch_size, time, both output sizes], and the last states of each.

    Raises:
        ValueError: the lists are empty, not lists or of different lengths.
    """

    def layer(cell_fw: Any, cell_bw: Any, previous: Any, initial_fw: Any, initial_bw: Any) -> tuple[Any, Any, Any]:
        outputs, (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
            cell_fw,
            cell_bw,
            previous,
            sequence_length,
            initial_fw,
            initial_bw,
            dtype,
            parallel_iterations,
            swap_memory,
            time_major,
        )
        return tf.concat(outputs, 2), state_fw, state_bw

    return _stacked(layer, cells_fw, cells_bw, inputs, initial_states_fw, initial_states_bw, scope)


def _stacked(
    layer: _Layer, cells_fw: Any, cells_bw: Any, inputs: Any, initial_states_fw: Any, initial_states_bw: Any, scope: Any
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    for cells, direction in ((cells_fw, "fw"), (cells_bw, "bw")):
        if not cells:
            raise ValueError(f"Must specify at least one {direction} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{direction} must be a list of RNNCells (one per layer).")  # noqa: TRY004 -- as it was
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    initial = [_initial_states(states, len(cells_fw)) for states in (initial_states_fw, initial_states_bw)]
    states = []
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for number, arguments in enumerate(zip(cells_fw, cells_bw, *initial, strict=True)):
            cell_fw, cell_bw, initial_fw, initial_bw = arguments
            with tf.variable_scope(f"cell_{number}"):
                inputs, *last = layer(cell_fw, cell_bw, inputs, initial_fw, initial_bw)
            states.append(last)
    states_fw, states_bw = zip(*states, strict=True)
    return inputs, states_fw, states_bw


def _initial_states(states: Any, depth: int) -> list[Any]:
    if states is not None and (not isinstance(states, list) or len(states) != depth):
        raise ValueError("The initial states must be a list of state tensors (one per layer).")
    return states or [None] * depth
