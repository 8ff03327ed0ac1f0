"""Cells whose step is one operation, and an LSTM whose whole sequence is one.

TensorFlow still has the operations, BlockLSTM's gradient too, but forgot the gradients of the two cells.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

LayerRNNCell: Any = tf.nn.rnn_cell.BasicLSTMCell.__base__


@tf.RegisterGradient("LSTMBlockCell")
def _lstm_block_cell_gradient(op: tf.Operation, *grad: tf.Tensor) -> list[tf.Tensor]:
    x, cs_prev, h_prev, w, wci, wcf, wco, b = op.inputs
    i, cs, f, o, ci, co, _ = op.outputs
    gradients = tf.raw_ops.LSTMBlockCellGrad(
        x=x,
        cs_prev=cs_prev,
        h_prev=h_prev,
        w=w,
        wci=wci,
        wcf=wcf,
        wco=wco,
        b=b,
        i=i,
        cs=cs,
        f=f,
        o=o,
        ci=ci,
        co=co,
        cs_grad=grad[1],
        h_grad=grad[6],
        use_peephole=op.get_attr("use_peephole"),
    )
    gates = gradients.dicfo
    x_grad, h_prev_grad = _split_columns(tf.matmul(gates, w, transpose_b=True), x)
    w_grad = tf.matmul(tf.concat([x, h_prev], 1), gates, transpose_a=True)
    peepholes = [gradients.wci_grad, gradients.wcf_grad, gradients.wco_grad]
    return [x_grad, gradients.cs_prev_grad, h_prev_grad, w_grad, *peepholes, tf.reduce_sum(gates, 0)]


@tf.RegisterGradient("GRUBlockCell")
def _gru_block_cell_gradient(op: tf.Operation, *grad: tf.Tensor) -> list[tf.Tensor]:
    x, h_prev, w_ru, w_c, b_ru, b_c = op.inputs
    r, u, c, _ = op.outputs
    gradients = tf.raw_ops.GRUBlockCellGrad(
        x=x, h_prev=h_prev, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c, r=r, u=u, c=c, d_h=grad[3]
    )
    gates, candidate = gradients.d_r_bar_u_bar, gradients.d_c_bar
    w_ru_grad = tf.matmul(tf.concat([x, h_prev], 1), gates, transpose_a=True)
    w_c_grad = tf.matmul(tf.concat([x, h_prev * r], 1), candidate, transpose_a=True)
    biases = [tf.reduce_sum(gates, 0), tf.reduce_sum(candidate, 0)]
    return [gradients.d_x, gradients.d_h_prev, w_ru_grad, w_c_grad, *biases]


def _split_columns(tensor: tf.Tensor, first: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The columns that are as many as those of another tensor, and the rest, with what is known of their shapes."""
    size = first.shape[1]
    return tensor[:, :size], tensor[:, size:]


class _LSTMVariables:
    """The variables of both block LSTMs, named as those of ``tf.nn.rnn_cell.LSTMCell``."""

    _num_units: int
    _use_peephole: bool
    add_weight: Any

    def _add_variables(self, input_size: int) -> None:
        size = self._num_units
        self._kernel = self.add_weight("kernel", [input_size + size, 4 * size])
        self._bias = self.add_weight("bias", [4 * size], initializer=tf.zeros_initializer())
        names = ("w_i_diag", "w_f_diag", "w_o_diag") if self._use_peephole else ()
        self._diagonals = [self.add_weight(name, [size]) for name in names]

    def _peepholes(self, dtype: Any) -> dict[str, Any]:
        diagonals = self._diagonals or [tf.zeros([self._num_units], dtype)] * 3
        return dict(zip(("wci", "wcf", "wco"), diagonals, strict=True))


class LSTMBlockCell(_LSTMVariables, LayerRNNCell):
    """``tf.nn.rnn_cell.LSTMCell`` as one operation.

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
        dtype: Any = None,
        reuse: bool | None = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = -1 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole
        self.input_spec = tf.layers.InputSpec(ndim=2)

    @property
    def state_size(self) -> Any:
        """An LSTMStateTuple of ``num_units`` and ``num_units``."""
        return tf.nn.rnn_cell.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        """``num_units``."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables for inputs of shape [batch_size, input_size].

        Raises:
            ValueError: the input size is not known.
        """
        self._add_variables(_known_size(inputs_shape, "inputs_shape[1]"))
        self.built = True

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        """One step.

        Args:
            inputs: of shape [batch_size, input_size].
            state: cell's state and output of the step before, each of shape [batch_size, num_units].

        Returns:
            The output and the new state, an LSTMStateTuple.

        Raises:
            ValueError: the state is not a pair.
        """
        if len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        outputs = tf.raw_ops.LSTMBlockCell(
            x=inputs,
            cs_prev=state[0],
            h_prev=state[1],
            w=self._kernel,
            b=self._bias,
            forget_bias=self._forget_bias,
            cell_clip=self._cell_clip,
            use_peephole=self._use_peephole,
            **self._peepholes(self.dtype),
        )
        return outputs.h, tf.nn.rnn_cell.LSTMStateTuple(outputs.cs, outputs.h)


class LSTMBlockWrapper(tf.layers.Layer):
    """An LSTM over a whole sequence; a subclass says how in ``_call_cell``, and its ``num_units``."""

    num_units: int

    def _call_cell(
        self, inputs: tf.Tensor, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Cell states and outputs of every step, each of shape [time, batch_size, num_units]."""
        raise NotImplementedError

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


class LSTMBlockFusedCell(_LSTMVariables, LSTMBlockWrapper):
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
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = -1 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole
        self.input_spec = tf.layers.InputSpec(ndim=3)

    @property
    def num_units(self) -> int:  # type: ignore[override]
        """Size of the state."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Makes the variables for inputs of shape [time, batch_size, input_size]."""
        self._add_variables(input_shape[-1].value if hasattr(input_shape[-1], "value") else input_shape[-1])
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
            w=self._kernel,
            b=self._bias,
            forget_bias=self._forget_bias,
            cell_clip=self._cell_clip,
            use_peephole=self._use_peephole,
            **self._peepholes(dtype),
        )
        return outputs.cs, outputs.h


class GRUBlockCell(LayerRNNCell):
    """``tf.nn.rnn_cell.GRUCell`` as one operation, with variable names of its own.

    Args:
        num_units: size of the state.
        cell_size: its older name.

    Raises:
        ValueError: not exactly one of them is given.
    """

    _NAMES = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self, num_units: int | None = None, cell_size: int | None = None, reuse: bool | None = None, name: str = "gru_cell"
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._cell_size: Any = cell_size if num_units is None else num_units
        self.input_spec = tf.layers.InputSpec(ndim=2)

    @property
    def state_size(self) -> int:
        """``num_units``."""
        return self._cell_size

    @property
    def output_size(self) -> int:
        """``num_units``."""
        return self._cell_size

    def build(self, input_shape: Any) -> None:
        """Makes the variables for inputs of shape [batch_size, input_size].

        Raises:
            ValueError: the input size is not known.
        """
        size = self._cell_size
        rows = _known_size(input_shape, "input_size") + size
        gate_kernel, gate_bias, candidate_kernel, candidate_bias = self._NAMES
        self._gate_kernel = self.add_weight(gate_kernel, [rows, 2 * size])
        self._gate_bias = self.add_weight(gate_bias, [2 * size], initializer=tf.ones_initializer())
        self._candidate_kernel = self.add_weight(candidate_kernel, [rows, size])
        self._candidate_bias = self.add_weight(candidate_bias, [size], initializer=tf.zeros_initializer())
        self.built = True

    def call(self, inputs: tf.Tensor, h_prev: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """One step.

        Args:
            inputs: of shape [batch_size, input_size].
            h_prev: the state, of shape [batch_size, num_units].

        Returns:
            The output and the new state, which are the same.

        Raises:
            ValueError: the state has another size.
        """
        if h_prev.shape[1] != self._cell_size:
            raise ValueError(f"Shape of h_prev[1] incorrect: cell_size {self._cell_size} vs {h_prev.shape[1]}")
        output = tf.raw_ops.GRUBlockCell(
            x=inputs,
            h_prev=h_prev,
            w_ru=self._gate_kernel,
            w_c=self._candidate_kernel,
            b_ru=self._gate_bias,
            b_c=self._candidate_bias,
        ).h
        return output, output


class GRUBlockCellV2(GRUBlockCell):
    """GRUBlockCell with the variable names of ``tf.nn.rnn_cell.GRUCell``."""

    _NAMES = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")


def _known_size(shape: Any, what: str) -> int:
    size = tf.TensorShape(shape).as_list()[1]
    if size is None:
        raise ValueError(f"Expecting {what} to be set: {shape}")
    return size
