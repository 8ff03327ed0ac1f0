"""An LSTM whose whole sequence is one operation."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from estimator_bridge.legacy.contrib.rnn.block_cells import LSTMVariables


class LSTMBlockWrapper(tf.layers.Layer):
    """An LSTM over a whole sequence; a subclass says how in ``_call_cell``, and its ``num_units``."""

    num_units: int

    def _call_cell(
        self, inputs: tf.Tensor, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Cell states and outputs of every step, each of shape [time, batch_size, num_units]."""
        raise NotImplementedError(
            f"{type(self).__name__} has no _call_cell: a subclass of LSTMBlockWrapper computes its steps there."
        )

    def call(self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None) -> tuple[Any, Any]:
        """All steps.

        Args:
            inputs: of shape [time, batch_size, input_size], or a list of tensors of shape [batch_size, input_size].
            initial_state: cell's state and output, each of shape [batch_size, num_units]; zeros unless given.
            dtype: of the state, if none is given.
            sequence_length: int of shape [batch_size]: behind it outputs are zeros and the state stays.

        Returns:
            Outputs of shape [time, batch_size, num_units] (a list for a list), and the last state, an LSTMStateTuple.

        Raises:
            ValueError: neither a state nor its dtype is given, or the state is not a pair.
        """
        steps = tf.stack(inputs) if isinstance(inputs, list) else inputs
        cell_state, output = self._initial_state(steps, initial_state, dtype)
        cell_states, outputs = self._call_cell(steps, cell_state, output, cell_state.dtype, sequence_length)
        if sequence_length is None:
            last = (cell_states[-1], outputs[-1])
        else:
            lengths = tf.convert_to_tensor(sequence_length)
            mask = tf.sequence_mask(lengths, tf.shape(steps)[0], dtype=outputs.dtype)
            outputs *= tf.expand_dims(tf.transpose(mask), -1)
            where = tf.stack([lengths, tf.range(tf.shape(steps)[1], dtype=lengths.dtype)], axis=1)
            pairs = ((cell_state, cell_states), (output, outputs))
            last = tuple(tf.gather_nd(tf.concat([first[tf.newaxis], rest], 0), where) for first, rest in pairs)
        return tf.unstack(outputs) if isinstance(inputs, list) else outputs, tf.nn.rnn_cell.LSTMStateTuple(*last)

    def _initial_state(self, steps: tf.Tensor, initial_state: Any, dtype: Any) -> Any:
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            zeros = tf.zeros(tf.stack([tf.shape(steps)[1], self.num_units]), dtype)
            return zeros, zeros
        if len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        return initial_state


class LSTMBlockFusedCell(LSTMVariables, LSTMBlockWrapper):
    """An LSTM whose whole sequence is one operation.

    Args:
        num_units: size of the state.
        forget_bias: added to the forget gate.
        cell_clip: clips the cell's state, unless None.
        use_peephole: with diagonal connections from the cell's state to the gates.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._keep(num_units, forget_bias, cell_clip, use_peephole)
        self.input_spec = tf.layers.InputSpec(ndim=3)

    @property
    def num_units(self) -> int:  # type: ignore[override]
        """Size of the state."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Makes the variables for inputs of shape [time, batch_size, input_size]."""
        self.add_variables(input_shape[-1].value if hasattr(input_shape[-1], "value") else input_shape[-1])
        self.built = True

    def _call_cell(
        self, inputs: tf.Tensor, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        longest = tf.shape(inputs)[0] if sequence_length is None else tf.reduce_max(sequence_length)
        outputs = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(longest, tf.int64),
            x=inputs,
            cs_prev=initial_cell_state,
            h_prev=initial_output,
            **self.arguments(dtype),
        )
        return outputs.cs, outputs.h
