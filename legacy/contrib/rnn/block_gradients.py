"""The gradient of the operation LSTMBlockCell, which TensorFlow still has, but without this."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


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


def _split_columns(tensor: tf.Tensor, first: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The columns that are as many as those of another tensor, and the rest, with what is known of their shapes."""
    size = first.shape[1]
    return tensor[:, :size], tensor[:, size:]
