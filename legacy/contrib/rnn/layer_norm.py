"""An LSTM with layer normalisation and recurrent dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
import tf_slim


class LayerNormBasicLSTMCell(tf.nn.rnn_cell.RNNCell):
    """An LSTM whose gates and state are normalised (Ba et al., 2016), with dropout of what is added to the state.

    Args:
        num_units: size of the state.
        forget_bias: added to the forget gate.
        input_size: not used.
        activation: of the state.
        layer_norm: normalise; without it there is a bias instead.
        norm_gain: initial ``gamma``.
        norm_shift: initial ``beta``.
        dropout_keep_prob: of recurrent dropout (Semeniuta et al., 2016).
        dropout_prob_seed: its seed.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: int | None = None,
        activation: Callable[[tf.Tensor], tf.Tensor] = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if input_size is not None:
            tf.logging.warn("%s: The input_size parameter is deprecated.", self)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = activation
        self._layer_norm = layer_norm
        self._initializers = {"gamma": tf.constant_initializer(norm_gain), "beta": tf.constant_initializer(norm_shift)}
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    @property
    def state_size(self) -> Any:
        """An LSTMStateTuple of ``num_units`` and ``num_units``."""
        return tf.nn.rnn_cell.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        """``num_units``."""
        return self._num_units

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        """One step.

        Args:
            inputs: of shape [batch_size, input_size].
            state: cell's state and output of the step before, each of shape [batch_size, num_units].

        Returns:
            The output and the new state, an LSTMStateTuple.
        """
        cell_state, output = state
        gates = tf.split(self._linear(tf.concat([inputs, output], 1)), 4, axis=1)
        names = ("input", "transform", "forget", "output")
        i, j, f, o = (self._norm(gate, name) for gate, name in zip(gates, names, strict=True))
        added = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            added = tf.nn.dropout(added, rate=1 - self._keep_prob, seed=self._seed)
        kept = cell_state * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * added
        new_state = self._norm(kept, "state")
        new_output = self._activation(new_state) * tf.sigmoid(o)
        return new_output, tf.nn.rnn_cell.LSTMStateTuple(new_state, new_output)

    def _linear(self, args: tf.Tensor) -> tf.Tensor:
        columns = 4 * self._num_units
        product = tf.matmul(args, tf.get_variable("kernel", [args.shape[-1], columns], args.dtype))
        return product if self._layer_norm else tf.nn.bias_add(product, tf.get_variable("bias", [columns], args.dtype))

    def _norm(self, tensor: tf.Tensor, scope: str) -> tf.Tensor:
        if not self._layer_norm:
            return tensor
        with tf.variable_scope(scope):
            for name, initializer in self._initializers.items():
                tf.get_variable(name, tensor.shape[-1:], tensor.dtype, initializer)
        return tf_slim.layer_norm(tensor, reuse=True, scope=scope)
