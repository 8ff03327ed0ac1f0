"""Cells whose step is one operation."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from estimator_bridge.legacy.contrib.rnn import block_gradients  # noqa: F401 -- registers them

LayerRNNCell: Any = tf.nn.rnn_cell.BasicLSTMCell.__base__


class LSTMVariables:
    """What both block LSTMs keep and give their operations; the variables are named as those of ``tf.nn.rnn_cell.LSTMCell``."""

    add_weight: Any

    def _keep(self, num_units: int, forget_bias: float, cell_clip: float | None, use_peephole: bool) -> None:
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = -1 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole

    def add_variables(self, input_size: int) -> None:
        """Makes them, for inputs of that size."""
        size = self._num_units
        self._kernel = self.add_weight("kernel", [input_size + size, 4 * size])
        self._bias = self.add_weight("bias", [4 * size], initializer=tf.zeros_initializer())
        names = ("w_i_diag", "w_f_diag", "w_o_diag") if self._use_peephole else ()
        self._diagonals = [self.add_weight(name, [size]) for name in names]

    def arguments(self, dtype: Any) -> dict[str, Any]:
        """Those of the operations that are no input of a step; peepholes are zeros where there are none."""
        diagonals = self._diagonals or [tf.zeros([self._num_units], dtype)] * 3
        return {
            "w": self._kernel,
            "b": self._bias,
            "forget_bias": self._forget_bias,
            "cell_clip": self._cell_clip,
            "use_peephole": self._use_peephole,
            **dict(zip(("wci", "wcf", "wco"), diagonals, strict=True)),
        }


class LSTMBlockCell(LSTMVariables, LayerRNNCell):
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
        self._keep(num_units, forget_bias, cell_clip, use_peephole)
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
        self.add_variables(_known_size(inputs_shape, "inputs_shape[1]"))
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
            **self.arguments(self.dtype),
        )
        return outputs.h, tf.nn.rnn_cell.LSTMStateTuple(outputs.cs, outputs.h)


def _known_size(shape: Any, what: str) -> int:
    size = tf.TensorShape(shape).as_list()[1]
    if size is None:
        raise ValueError(f"Expecting {what} to be set: {shape}")
    return size
